//! The readers: a few threads with a connection each, for what the caches do not have.
//!
//! In WAL mode they neither wait for the writer nor make it wait, and every query sees all that was
//! committed before it began.

use super::queue::{QueueItems, WorkQueue};
use crate::StoreError;
use rusqlite::Connection;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// Queries that may wait; beyond that their callers do.
const QUEUE_LEN_MAX: usize = 1024;
/// An idle reader only checks whether it is still needed.
const IDLE: Duration = Duration::from_mins(1);

type Query = Box<dyn FnOnce(&Connection) + Send>;

/// The handle. Dropping it ends the threads.
pub(super) struct Readers {
    queue: Arc<WorkQueue<Query>>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    pub fn start(connections: Vec<Connection>) -> io::Result<Self> {
        let mut readers = Self { queue: Arc::new(WorkQueue::new(QUEUE_LEN_MAX)), threads: Vec::new() };
        for connection in connections {
            let queue = Arc::clone(&readers.queue);
            let work = move || {
                loop {
                    match queue.take(1, IDLE) {
                        QueueItems::Items(queries) => {
                            for query in queries {
                                query(&connection);
                            }
                        }
                        QueueItems::Idle => {}
                        QueueItems::Closed => break,
                    }
                }
            };
            let thread = std::thread::Builder::new().name("store-reader".to_owned()).spawn(work)?;
            readers.threads.push(thread);
        }
        Ok(readers)
    }

    /// Runs a query on one of the threads, unless its caller has stopped waiting by then.
    pub async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let ask: Query = Box::new(move |connection| {
            if !answer.is_closed() {
                // The caller may have stopped waiting.
                let _ = answer.send(query(connection));
            }
        });
        let stopped = || StoreError::Unavailable("its readers have stopped".to_owned());
        self.queue.push(ask).await.map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())?
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.queue.close();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a reader of the store had panicked");
            }
        }
    }
}
