//! What an ended job still owes: a notice to its worker, a notice to whoever watches the dead letters.

use super::Jobs;
use crate::observe::{Trouble, with_context};
use reveille_bus::{BusError, Message};
use reveille_core::job::Job;
use reveille_core::life;
use reveille_store::{Commit, Step, StoreError};
use reveille_wire::{convert, subject};
use std::sync::Arc;

impl Jobs {
    /// Sends them, and then marks them as sent. A crash in between sends them twice.
    pub(crate) async fn send_notices(self, job: Arc<Job>) {
        let words = "notice not published; retrying";
        self.observe.insist(Trouble::Bus, words, job.id(), || self.publish_notices(&job)).await;
        let words = "notices sent, but not marked as sent; they may be sent again";
        self.observe.insist(Trouble::Store, words, job.id(), || self.mark_as_sent(&job)).await;
    }

    async fn mark_as_sent(&self, sent: &Job) -> Result<(), StoreError> {
        let _lock = self.lock(sent.id()).await;
        loop {
            let Some(job) = self.store.job(sent.id()).await? else { return Ok(()) };
            // If the job has moved on (a success was quarantined), its later change owes its own notices.
            let notices = |job: &Job| (job.state(), job.owed.cancel, job.owed.dead_letter);
            if notices(&job) != notices(sent) {
                return Ok(());
            }
            if self.store.commit(Step::change(&job, life::settled(&job))).await? != Commit::Conflict {
                return Ok(());
            }
        }
    }

    async fn publish_notices(&self, job: &Job) -> Result<(), BusError> {
        let (now, context) = (self.runtime.now(), self.observe.trace_of(&job.request).job());
        if job.owed.cancel {
            let message =
                Message::new(subject::JOB_CANCEL, self.runtime.encode(&convert::cancel_packet(job, now)))
                    .about(&job.request.tenant);
            self.bus.publish(with_context(message, &context)).await?;
        }
        if job.owed.dead_letter {
            // A job dies once in each state that is a death: a notice that is sent again is the same notice.
            let id = Some(format!("{}:{}:{}", subject::JOB_DLQ, job.id(), job.state()));
            let packet = self.runtime.encode(&convert::dead_letter_packet(job, now));
            let message = Message { id, ..Message::new(subject::JOB_DLQ, packet) };
            self.bus.publish(with_context(message, &context)).await?;
        }
        Ok(())
    }
}
