//! Where what somebody else wrote is worked out when that may take long: on threads of their own, a few at a
//! time, so that whoever only asks whether we are alive is answered meanwhile.
//!
//! What it may cost is counted ([`reveille_core::cost`]); when the caller goes away, the work ends too.

use reveille_core::cost::{CostLimit, Meter};
use reveille_core::id::TenantId;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;

/// Questions of one tenant that are worked out or wait to be.
pub const QUESTIONS_PER_TENANT_MAX: usize = 4;

/// A handle; clones are the same pool.
#[derive(Clone)]
pub struct EvaluationPool(Arc<Inner>);

struct Inner {
    threads: Semaphore,
    questions: Mutex<FxHashMap<TenantId, usize>>,
}

/// The tenant has as much under way as it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{QUESTIONS_PER_TENANT_MAX} questions of this tenant are being worked out already")]
pub struct TooManyQuestions;

impl Default for EvaluationPool {
    /// Half of the machine, so that the other half is there for everybody.
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = Semaphore::new((cores / 2).max(1));
        Self(Arc::new(Inner { threads, questions: Mutex::default() }))
    }
}

impl EvaluationPool {
    /// A question of a tenant: may it ask another one? The place is given back when the answer is dropped.
    pub fn question(&self, tenant: &TenantId) -> Result<TenantQuestion, TooManyQuestions> {
        let mut questions = self.0.questions();
        let under_way = questions.entry(tenant.clone()).or_default();
        if *under_way >= QUESTIONS_PER_TENANT_MAX {
            return Err(TooManyQuestions);
        }
        *under_way += 1;
        Ok(TenantQuestion { pool: self.clone(), tenant: tenant.clone() })
    }

    /// Works something out. Whoever drops the future ends the work.
    pub async fn run<T: Send + 'static>(
        &self,
        limit: CostLimit,
        work: impl FnOnce(&Meter) -> T + Send + 'static,
    ) -> T {
        let Ok(_thread) = self.0.threads.acquire().await else { unreachable!("nobody closes the pool") };
        let guard = AbandonOnDrop(Arc::default());
        let abandoned = guard.0.clone();
        match tokio::task::spawn_blocking(move || work(&Meter::until(limit, abandoned))).await {
            Ok(answer) => answer,
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }
}

/// Works out what takes little; nothing, if it takes more than that. Then it is a case for the pool.
pub fn at_once<T>(work: impl FnOnce(&Meter) -> T) -> Option<T> {
    let meter = Meter::new(CostLimit::RUN_EVENT_INLINE);
    let answer = work(&meter);
    meter.exceeded().is_none().then_some(answer)
}

impl Inner {
    fn questions(&self) -> MutexGuard<'_, FxHashMap<TenantId, usize>> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a tenant's question.
pub struct TenantQuestion {
    pool: EvaluationPool,
    tenant: TenantId,
}

impl Drop for TenantQuestion {
    fn drop(&mut self) {
        let mut questions = self.pool.0.questions();
        if let Some(under_way) = questions.get_mut(&self.tenant) {
            *under_way -= 1;
            if *under_way == 0 {
                questions.remove(&self.tenant);
            }
        }
    }
}

struct AbandonOnDrop(Arc<AtomicBool>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_core::cost::TooExpensive;
    use tokio::sync::oneshot;

    fn tenant(name: &str) -> TenantId {
        TenantId::parse(name).unwrap()
    }

    #[test]
    fn a_tenant_has_a_handful_of_questions_and_others_have_theirs() {
        let pool = EvaluationPool::default();
        let mut asked: Vec<_> = (0..QUESTIONS_PER_TENANT_MAX).map(|_| pool.question(&tenant("a"))).collect();
        assert!(asked.iter().all(Result::is_ok));
        assert!(pool.question(&tenant("a")).is_err());
        assert!(pool.question(&tenant("b")).is_ok());
        asked.pop();
        assert!(pool.question(&tenant("a")).is_ok());
    }

    #[tokio::test]
    async fn work_ends_when_nobody_waits_for_it() {
        let pool = EvaluationPool::default();
        let endless = CostLimit { steps: u64::MAX, bytes: u64::MAX };
        let (begun, has_begun) = oneshot::channel();
        let (ended, has_ended) = oneshot::channel();
        let work = pool.run(endless, move |meter| {
            let _ = begun.send(());
            let reason = loop {
                if let Err(reason) = meter.step(1) {
                    break reason;
                }
            };
            let _ = ended.send(reason);
        });
        tokio::select! {
            () = work => unreachable!("it has no end"),
            _ = has_begun => {}
        }
        assert_eq!(has_ended.await, Ok(TooExpensive::Abandoned));
    }
}
