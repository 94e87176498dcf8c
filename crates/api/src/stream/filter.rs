//! Which events somebody wants. A filter lets through what has the property and matches it.

use crate::ApiError;
use crate::types::event::EventQuery;
use reveille_core::presence::Contract;
use reveille_engine::What;

#[derive(Debug, Default)]
pub struct Filter {
    kinds: Option<Kinds>,
    worker: Option<String>,
    job: Option<String>,
    pub contract: Option<Contract>,
}

#[derive(Debug, Default)]
struct Kinds {
    worker: bool,
    job: bool,
    run: bool,
    workspace: bool,
}

impl Filter {
    pub fn understood(query: &EventQuery) -> Result<Self, ApiError> {
        let wrong = |field: &str, words: &str| Err(ApiError::field(field, words));
        let mut kinds = None;
        for kind in query.kinds.as_deref().into_iter().flat_map(|list| list.split(',')) {
            let kinds = kinds.get_or_insert_with(Kinds::default);
            match kind.trim() {
                "worker" => kinds.worker = true,
                "job" => kinds.job = true,
                "run" => kinds.run = true,
                "workspace" => kinds.workspace = true,
                _ => return wrong("kinds", "must be of worker, job, run and workspace, with commas between"),
            }
        }
        let contract = match query.contract.as_deref() {
            None => None,
            Some(word) => match Contract::parse(word) {
                Some(contract) => Some(contract),
                None => return wrong("contract", "must be cap, voicegateway or molecule"),
            },
        };
        Ok(Self { kinds, worker: query.worker.clone(), job: query.job.clone(), contract })
    }

    /// Whether a fleet is part of what is wanted at all.
    pub fn wants_workers(&self) -> bool {
        self.job.is_none() && self.kinds.as_ref().is_none_or(|kinds| kinds.worker)
    }

    /// Whether a member of this name is meant.
    pub fn wants_worker(&self, id: &str) -> bool {
        self.worker.as_deref().is_none_or(|worker| worker == id)
    }

    pub fn lets(&self, what: &What) -> bool {
        let kinds = self.kinds.as_ref();
        match what {
            What::Worker { member, .. } => {
                self.wants_workers()
                    && self.wants_worker(member.id.as_str())
                    && self.contract.is_none_or(|contract| contract == member.contract)
            }
            What::Job { id, worker, .. } => {
                let at_worker = |asked: &String| worker.as_ref().is_some_and(|id| id.as_str() == asked);
                kinds.is_none_or(|kinds| kinds.job)
                    && self.contract.is_none()
                    && self.job.as_deref().is_none_or(|job| job == id.as_str())
                    && self.worker.as_ref().is_none_or(at_worker)
            }
            What::Run { .. } => {
                kinds.is_none_or(|kinds| kinds.run)
                    && self.contract.is_none()
                    && self.job.is_none()
                    && self.worker.is_none()
            }
            What::Workspace { id, .. } => {
                kinds.is_none_or(|kinds| kinds.workspace)
                    && self.job.is_none()
                    && self.wants_worker(id.as_str())
                    && self.contract.is_none_or(|contract| contract == Contract::Molecule)
            }
        }
    }
}
