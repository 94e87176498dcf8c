//! The path from async tasks to the threads that own a connection: a bounded queue whose sender waits without
//! blocking a runtime thread and whose receiver takes many items at once.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

pub(super) struct WorkQueue<T> {
    state: Mutex<QueueState<T>>,
    filled: Condvar,
    room: Semaphore,
}

struct QueueState<T> {
    items: VecDeque<T>,
    is_closed: bool,
    /// Threads that wait for an item. If none waits, none is woken: a wake-up is a system call.
    waiting: usize,
}

/// What a thread got when it asked for work.
pub(super) enum QueueItems<T> {
    Items(Vec<T>),
    /// Nothing arrived within the time it was willing to wait.
    Idle,
    /// Nothing is left, and nothing will come.
    Closed,
}

impl<T> WorkQueue<T> {
    pub fn new(len_max: usize) -> Self {
        let state = QueueState { items: VecDeque::new(), is_closed: false, waiting: 0 };
        Self { state: Mutex::new(state), filled: Condvar::new(), room: Semaphore::new(len_max) }
    }

    /// Waits for room and adds an item; fails only if the queue is closed.
    pub async fn push(&self, item: T) -> Result<(), Closed> {
        let permit = self.room.acquire().await.map_err(|_| Closed)?;
        let mut state = self.lock();
        if state.is_closed {
            return Err(Closed);
        }
        // The place is free again when the item has been taken.
        permit.forget();
        state.items.push_back(item);
        let is_awaited = state.waiting > 0;
        drop(state);
        if is_awaited {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Takes what is queued, at most `len_max` items, or waits for it.
    pub fn take(&self, len_max: usize, patience: Duration) -> QueueItems<T> {
        let mut state = self.lock();
        if state.items.is_empty() && !state.is_closed {
            state.waiting += 1;
            let waited = self
                .filled
                .wait_timeout_while(state, patience, |state| state.items.is_empty() && !state.is_closed);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.waiting -= 1;
        }
        let len = state.items.len().min(len_max);
        if len == 0 {
            return if state.is_closed { QueueItems::Closed } else { QueueItems::Idle };
        }
        let items = state.items.drain(..len).collect();
        drop(state);
        self.room.add_permits(len);
        QueueItems::Items(items)
    }

    /// Accepts no items after this; queued ones may still be taken.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.room.close();
        self.filled.notify_all();
    }

    /// Closes the queue and drops what is in it: its thread is gone.
    pub fn abandon(&self) {
        self.close();
        let items = std::mem::take(&mut self.lock().items);
        drop(items);
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nobody takes from the queue any more.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Closed;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const NO_PATIENCE: Duration = Duration::ZERO;

    fn taken(queue: &WorkQueue<u32>, len_max: usize) -> Vec<u32> {
        match queue.take(len_max, NO_PATIENCE) {
            QueueItems::Items(items) => items,
            QueueItems::Idle => vec![],
            QueueItems::Closed => panic!("closed"),
        }
    }

    #[tokio::test]
    async fn items_are_taken_in_order_and_at_most_so_many() {
        let queue = WorkQueue::new(8);
        assert!(taken(&queue, 2).is_empty());
        for item in 1..=3 {
            queue.push(item).await.unwrap();
        }
        assert_eq!(taken(&queue, 2), [1, 2]);
        assert_eq!(taken(&queue, 2), [3]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_queue_makes_its_callers_wait() {
        let queue = Arc::new(WorkQueue::new(1));
        queue.push(1).await.unwrap();
        let waits = tokio::time::timeout(Duration::from_secs(1), queue.push(2)).await;
        assert!(waits.is_err());
        assert_eq!(taken(&queue, 8), [1]);
        queue.push(3).await.unwrap();
        assert_eq!(taken(&queue, 8), [3], "a caller that gave up left nothing behind");
    }

    #[tokio::test]
    async fn a_closed_queue_is_emptied_and_takes_no_more() {
        let queue = WorkQueue::new(8);
        queue.push(1).await.unwrap();
        queue.close();
        assert_eq!(queue.push(2).await, Err(Closed));
        assert_eq!(taken(&queue, 8), [1]);
        assert!(matches!(queue.take(8, NO_PATIENCE), QueueItems::Closed));
    }
}
