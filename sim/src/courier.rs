//! The courier as one life of the server sees it: letters arrive, arrive twice, never arrive, or arrive
//! and their answer does not. Every letter is looked at where it arrives.

use crate::breakage::Breakage;
use crate::faults::Fault;
use crate::server::Life;
use crate::sights::Sight;
use crate::world::{World, sleep_ms};
use reveille_a2a::{A2aClient, A2aError, A2aRequest, Received, Reply};
use reveille_core::id::JobId;
use serde_json::Value;
use std::sync::Arc;

pub struct SimCourier {
    world: Arc<World>,
    life: Life,
}

impl SimCourier {
    pub fn new(world: Arc<World>, life: Life) -> Self {
        Self { world, life }
    }

    async fn bring(&self, letter: &A2aRequest, received: Received) -> Result<Reply, A2aError> {
        let world = &self.world;
        sleep_ms(world.rng.skewed(0, 300)).await;
        self.life.here().await;
        if world.strikes(Fault::LetterLost) {
            return Err(A2aError::Unreachable("the simulation says so".to_owned()));
        }
        let Some(workspace) = world.workspaces().iter().find(|one| one.is_alive() && one.url() == letter.url)
        else {
            sleep_ms(world.rng.between(0, 5_000)).await;
            return Err(A2aError::Unreachable("nobody is there".to_owned()));
        };
        let Some(mail) = Mail::of(letter) else {
            world.fail("a letter cannot be read");
            return Err(A2aError::TimedOut);
        };
        let message = self.stamped(&mail);
        world.trace.say(format_args!("{} gets {:?} as {message}", workspace.id, mail.task));
        let is_again = world.post(|post| post.arrives(&mail, &message, &workspace.id));
        if is_again {
            world.sights.saw(Sight::LetterAgain);
        }
        world.check(|ledger| ledger.delivered(&JobId::known(message.as_str()), &workspace.id));
        received();
        if world.strikes(Fault::LetterRepeated) {
            let (workspace, world, message) = (workspace.clone(), world.clone(), message.clone());
            tokio::spawn(async move { workspace.answer(&world, &message).await });
        }
        if world.strikes(Fault::LetterBroken) {
            let (workspace, world) = (workspace.clone(), world.clone());
            let after_ms = world.rng.skewed(1, 20_000);
            tokio::spawn(async move { workspace.answer(&world, &message).await });
            sleep_ms(after_ms).await;
            return Err(A2aError::Broken("the simulation says so".to_owned()));
        }
        let answer = workspace.answer(world, &message).await;
        answer.ok_or_else(|| A2aError::Broken("the workspace died over it".to_owned()))
    }

    /// The id under which the letter arrives.
    fn stamped(&self, mail: &Mail) -> String {
        let is_known = self.world.post(|post| post.knows(mail));
        if self.world.breakage == Some(Breakage::RenameLetter) && is_known {
            return format!("{}-again", mail.message);
        }
        mail.message.clone()
    }
}

#[async_trait::async_trait]
impl A2aClient for SimCourier {
    async fn check(&self, _url: &str) -> Result<(), A2aError> {
        self.life.here().await;
        Ok(())
    }

    async fn post(&self, letter: A2aRequest, received: Received) -> Result<Reply, A2aError> {
        self.life.here().await;
        let answer = tokio::time::timeout(letter.patience, self.bring(&letter, received)).await;
        self.life.here().await;
        answer.unwrap_or(Err(A2aError::TimedOut))
    }
}

/// What a letter says.
pub struct Mail {
    pub message: String,
    pub task: String,
    pub from: String,
}

impl Mail {
    fn of(letter: &A2aRequest) -> Option<Self> {
        let body: Value = serde_json::from_slice(&letter.body).ok()?;
        let message = body.pointer("/params/message")?;
        let (name, from) = letter.headers.first()?;
        (*name == "x-workspace-id").then_some(())?;
        Some(Self {
            message: message.get("messageId")?.as_str()?.to_owned(),
            task: message.pointer("/parts/0/text")?.as_str()?.to_owned(),
            from: from.clone(),
        })
    }
}
