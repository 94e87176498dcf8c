//! What the agent is working on.

use std::sync::Arc;

use tokio::sync::watch;

use crate::workspace::payload::shortened;

const DESCRIPTION_LEN_MAX: usize = 1000;

/// The running tasks; clones are the same ones.
#[derive(Clone, Default)]
pub struct Tasks {
    board: Arc<watch::Sender<TaskBoard>>,
}

/// All that runs, oldest first.
#[derive(Debug, Default)]
pub struct TaskBoard {
    started: u64,
    running: Vec<(u64, Arc<str>)>,
}

/// What the registry is told of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskReport {
    pub active_tasks: usize,
    /// The newest that still runs; empty when there is none.
    pub current_task: Arc<str>,
}

impl Tasks {
    pub fn start(&self, description: &str) -> Task {
        let mut number = 0;
        self.board.send_modify(|board| {
            board.started += 1;
            number = board.started;
            board.running.push((number, shortened(description, DESCRIPTION_LEN_MAX).into()));
        });
        Task { board: Arc::clone(&self.board), number }
    }

    pub fn watch(&self) -> watch::Receiver<TaskBoard> {
        self.board.subscribe()
    }
}

impl TaskBoard {
    pub fn work(&self) -> TaskReport {
        let current_task = self.running.last().map(|(_, description)| Arc::clone(description));
        TaskReport { active_tasks: self.running.len(), current_task: current_task.unwrap_or_default() }
    }
}

/// One task that the agent works on.
#[must_use = "the task ends when this is dropped"]
pub struct Task {
    board: Arc<watch::Sender<TaskBoard>>,
    number: u64,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.board.send_modify(|board| board.running.retain(|(number, _)| *number != self.number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_task_that_still_runs_is_the_current_one() {
        let tasks = Tasks::default();
        let told = |tasks: &Tasks| {
            let work = tasks.board.borrow().work();
            (work.active_tasks, work.current_task.to_string())
        };
        assert_eq!(told(&tasks), (0, String::new()));
        let first = tasks.start("read the mail");
        let second = tasks.start("answer it");
        assert_eq!(told(&tasks), (2, "answer it".to_owned()));
        drop(first);
        assert_eq!(told(&tasks), (1, "answer it".to_owned()));
        let third = tasks.start("archive it");
        drop(third);
        assert_eq!(told(&tasks), (1, "answer it".to_owned()));
        drop(second);
        assert_eq!(told(&tasks), (0, String::new()));
    }
}
