//! A batch: consecutive blob commands that may run together.
//!
//! Each write waits until it is durable, and the store makes many durable with one sync, so waiting for them one by
//! one would waste most of it. Commands on the same key are never in one batch, which keeps their order.

use super::blob::BlobExecutor;
use super::command::BlobCommand;
use super::reply::RespReply;
use futures_util::future::join_all;
use reveille_store::BlobKey;

/// How many commands run together.
const COMMANDS_MAX: usize = 64;

/// How many of them may be reads, whose answers can be as large as blobs and are in memory together.
const READS_MAX: usize = 8;

#[derive(Default)]
pub(super) struct RespBatch {
    commands: Vec<BlobCommand>,
    reads: usize,
}

impl RespBatch {
    /// Whether the command may run together with those in the batch.
    pub fn has_room_for(&self, command: &BlobCommand) -> bool {
        self.commands.len() < COMMANDS_MAX
            && !(is_read(command) && self.reads == READS_MAX)
            && !command.keys().iter().any(|key| self.touches(key))
    }

    pub fn push(&mut self, command: BlobCommand) {
        self.reads += usize::from(is_read(&command));
        self.commands.push(command);
    }

    /// Runs the batch; the answers are in the order of the commands.
    pub async fn run(&mut self, desk: &BlobExecutor) -> Vec<RespReply> {
        self.reads = 0;
        join_all(self.commands.drain(..).map(|command| desk.perform(command))).await
    }

    fn touches(&self, key: &BlobKey) -> bool {
        self.commands.iter().any(|command| command.keys().contains(key))
    }
}

fn is_read(command: &BlobCommand) -> bool {
    matches!(command, BlobCommand::Get(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(number: usize) -> BlobCommand {
        BlobCommand::Get(BlobKey::parse(&format!("ctx:{number}")).unwrap())
    }

    fn delete(number: usize) -> BlobCommand {
        BlobCommand::Delete(get(number).keys().to_vec())
    }

    #[test]
    fn commands_on_one_key_never_run_together() {
        let mut batch = RespBatch::default();
        batch.push(get(1));
        assert!(!batch.has_room_for(&delete(1)));
        assert!(!batch.has_room_for(&get(1)));
        assert!(batch.has_room_for(&delete(2)));
    }

    #[test]
    fn a_batch_is_bounded_in_commands_and_in_reads() {
        let mut batch = RespBatch::default();
        (0..READS_MAX).for_each(|number| batch.push(get(number)));
        assert!(!batch.has_room_for(&get(READS_MAX)));
        (READS_MAX..COMMANDS_MAX).for_each(|number| batch.push(delete(number)));
        assert!(!batch.has_room_for(&delete(COMMANDS_MAX)));
    }
}
