//! Messages between servers over the bus: jobs committed, beats that only one has heard, and requests counted.
//!
//! At most once and unordered between senders. A message that is lost costs a moment: the job is looked at again,
//! in the store, a little later, and beats come again.

use super::shared::SharedCluster;
use crate::observe::Trouble;
use reveille_bus::{BusError, Message};
use reveille_core::id::{JobId, RunId, TenantId, Topic, WorkerId, WorkspaceId};
use reveille_core::job::{Job, State};
use reveille_core::policy::Counted;
use reveille_core::presence::agent::AgentBeat;
use reveille_core::presence::workspace::Pulse;
use reveille_core::request::Delegated;
use reveille_core::time::Millis;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Where servers tell each other what they commit.
const SUBJECT: &str = "reveille.word";
/// The header that says which of them it is: nobody reads what it said itself.
const FROM: &str = "Reveille-From";
/// Peer messages in one message of the bus.
const BATCH_MAX: usize = 256;
/// How much is let come together before the next message. The first after a silence goes at once.
const PACE: Duration = Duration::from_millis(2);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum PeerMessage {
    Job(Box<PeerJob>),
    Agent {
        tenant: TenantId,
        beat: Box<AgentBeat<'static>>,
    },
    Pulse {
        workspace: WorkspaceId,
        pulse: Box<Pulse>,
    },
    Counted(Counted),
    /// A run is over.
    Run(RunId),
}

/// A job as another server has committed it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PeerJob {
    pub id: JobId,
    pub revision: u64,
    pub tenant: TenantId,
    pub topic: Topic,
    pub state: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<State>,
    /// The one that has it, or had it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegated: Option<Delegated>,
    pub at: Millis,
}

impl PeerJob {
    pub fn of(job: &Job) -> Self {
        let request = &job.request;
        Self {
            id: job.id().clone(),
            revision: job.revision,
            tenant: request.tenant.clone(),
            topic: request.topic.clone(),
            state: job.state(),
            before: job.state_before(),
            worker: job.worker().cloned(),
            delegated: request.delegated.clone(),
            at: job.updated_at,
        }
    }

    pub fn is_at_worker(&self) -> bool {
        matches!(self.state, State::Dispatched | State::Running)
    }
}

/// What waits to be sent, until the task takes it.
pub struct PeerMessages(pub(super) mpsc::Receiver<PeerMessage>);

impl SharedCluster {
    /// One message of the bus holds as many as wait.
    pub async fn send_peer_messages(self: Arc<Self>, mut unsent: PeerMessages) {
        let mut messages = Vec::with_capacity(BATCH_MAX);
        while unsent.0.recv_many(&mut messages, BATCH_MAX).await > 0 {
            let (body, is_full) = (serde_json::to_vec(&messages), messages.len() == BATCH_MAX);
            messages.clear();
            let Ok(body) = body else { continue };
            let message = Message::new(SUBJECT, body).with_headers([(FROM, self.store.name())]);
            if let Err(error) = self.bus.publish(message).await {
                self.observe.log(Trouble::Bus, "peer messages not sent", &SUBJECT, &error);
            }
            if !is_full {
                tokio::time::sleep(PACE).await;
            }
        }
    }

    /// Hands every message of another server to `receive`, until the engine ends.
    pub async fn receive_peer_messages(
        self: &Arc<Self>,
        receive: impl Fn(&PeerMessage) + Send + Sync + 'static,
    ) -> Result<(), BusError> {
        let mut subscription = self.bus.subscribe(SUBJECT, None).await?;
        let shared = self.clone();
        self.runtime.spawn(async move {
            while let Some(delivery) = subscription.recv().await {
                if delivery.message.header(FROM).any(|from| from == shared.store.name().as_bytes()) {
                    continue;
                }
                match serde_json::from_slice::<Vec<PeerMessage>>(&delivery.message.payload) {
                    Ok(messages) => messages.iter().for_each(&receive),
                    Err(error) => {
                        shared.observe.log(Trouble::Packets, "packet refused", &SUBJECT, &error);
                    }
                }
            }
        });
        Ok(())
    }
}
