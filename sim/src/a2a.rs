//! The A2A client of one life of the server: requests arrive, arrive twice, never arrive, or arrive and
//! their reply does not. Every request is checked where it arrives.

use crate::breakage::Breakage;
use crate::faults::Fault;
use crate::server::Life;
use crate::situations::Situation;
use crate::world::{World, sleep_ms};
use reveille_a2a::{A2aClient, A2aError, A2aReply, A2aRequest, Received};
use reveille_core::id::JobId;
use serde_json::Value;
use std::sync::Arc;

pub struct SimA2aClient {
    world: Arc<World>,
    life: Life,
}

impl SimA2aClient {
    pub fn new(world: Arc<World>, life: Life) -> Self {
        Self { world, life }
    }

    async fn deliver(&self, request: &A2aRequest, received: Received) -> Result<A2aReply, A2aError> {
        let world = &self.world;
        sleep_ms(world.rng.skewed(0, 300)).await;
        self.life.here().await;
        if world.strikes(Fault::A2aRequestLost) {
            return Err(A2aError::Unreachable("the simulation says so".to_owned()));
        }
        let Some(workspace) =
            world.workspaces().iter().find(|one| one.is_alive() && one.url() == request.url)
        else {
            sleep_ms(world.rng.between(0, 5_000)).await;
            return Err(A2aError::Unreachable("nobody is there".to_owned()));
        };
        let Some(sent) = A2aMessage::of(request) else {
            world.fail("an A2A request cannot be read");
            return Err(A2aError::TimedOut);
        };
        let message = self.message_id(&sent);
        world.trace.say(format_args!("{} gets {:?} as {message}", workspace.id, sent.task));
        let is_again = world.delegation_log(|log| log.arrives(&sent, &message, &workspace.id));
        if is_again {
            world.situations.record(Situation::A2aRequestAgain);
        }
        world.check(|ledger| ledger.delivered(&JobId::known(message.as_str()), &workspace.id));
        received();
        if world.strikes(Fault::A2aRequestRepeated) {
            let (workspace, world, message) = (workspace.clone(), world.clone(), message.clone());
            tokio::spawn(async move { workspace.answer(&world, &message).await });
        }
        if world.strikes(Fault::A2aReplyLost) {
            let (workspace, world) = (workspace.clone(), world.clone());
            let after_ms = world.rng.skewed(1, 20_000);
            tokio::spawn(async move { workspace.answer(&world, &message).await });
            sleep_ms(after_ms).await;
            return Err(A2aError::Broken("the simulation says so".to_owned()));
        }
        let answer = workspace.answer(world, &message).await;
        answer.ok_or_else(|| A2aError::Broken("the workspace died over it".to_owned()))
    }

    /// The message id under which the request arrives.
    fn message_id(&self, sent: &A2aMessage) -> String {
        let is_known = self.world.delegation_log(|log| log.knows(sent));
        if self.world.breakage == Some(Breakage::RenameA2aRequest) && is_known {
            return format!("{}-again", sent.message);
        }
        sent.message.clone()
    }
}

#[async_trait::async_trait]
impl A2aClient for SimA2aClient {
    async fn check(&self, _url: &str) -> Result<(), A2aError> {
        self.life.here().await;
        Ok(())
    }

    async fn post(&self, request: A2aRequest, received: Received) -> Result<A2aReply, A2aError> {
        self.life.here().await;
        let answer = tokio::time::timeout(request.patience, self.deliver(&request, received)).await;
        self.life.here().await;
        answer.unwrap_or(Err(A2aError::TimedOut))
    }
}

/// What an A2A request says.
pub struct A2aMessage {
    pub message: String,
    pub task: String,
    pub from: String,
}

impl A2aMessage {
    fn of(request: &A2aRequest) -> Option<Self> {
        let body: Value = serde_json::from_slice(&request.body).ok()?;
        let message = body.pointer("/params/message")?;
        let (name, from) = request.headers.first()?;
        (*name == "x-workspace-id").then_some(())?;
        Some(Self {
            message: message.get("messageId")?.as_str()?.to_owned(),
            task: message.pointer("/parts/0/text")?.as_str()?.to_owned(),
            from: from.clone(),
        })
    }
}
