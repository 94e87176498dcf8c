//! Which events somebody wants. A filter lets through what has the property and matches it.

use crate::ApiError;
use reveille_api_types::event::EventQuery;
use reveille_core::presence::Contract;
use reveille_engine::What;

/// What events are about.
const KINDS: [&str; 4] = ["worker", "job", "run", "workspace"];

#[derive(Debug, Default)]
pub struct EventFilter {
    kinds: Option<Vec<&'static str>>,
    worker: Option<String>,
    job: Option<String>,
    pub contract: Option<Contract>,
}

impl EventFilter {
    pub fn understood(query: &EventQuery) -> Result<Self, ApiError> {
        let wrong = |field: &str, words: &str| Err(ApiError::field(field, words));
        let mut kinds = None;
        for kind in query.kinds.as_deref().into_iter().flat_map(|list| list.split(',')) {
            let Some(known) = KINDS.into_iter().find(|known| *known == kind.trim()) else {
                return wrong("kinds", "must be of worker, job, run and workspace, with commas between");
            };
            kinds.get_or_insert_with(Vec::new).push(known);
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
        self.job.is_none() && self.wants_kind("worker")
    }

    fn wants_kind(&self, kind: &str) -> bool {
        self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&kind))
    }

    /// Whether a member of this name is meant.
    pub fn wants_worker(&self, id: &str) -> bool {
        self.worker.as_deref().is_none_or(|worker| worker == id)
    }

    pub fn lets(&self, what: &What) -> bool {
        match what {
            What::Worker { member, .. } => {
                self.wants_workers()
                    && self.wants_worker(member.id.as_str())
                    && self.contract.is_none_or(|contract| contract == member.contract)
            }
            What::Job { id, worker, .. } => {
                let at_worker = |asked: &String| worker.as_ref().is_some_and(|id| id.as_str() == asked);
                self.wants_kind("job")
                    && self.contract.is_none()
                    && self.job.as_deref().is_none_or(|job| job == id.as_str())
                    && self.worker.as_ref().is_none_or(at_worker)
            }
            What::Run { .. } => {
                self.wants_kind("run")
                    && self.contract.is_none()
                    && self.job.is_none()
                    && self.worker.is_none()
            }
            What::Workspace { id, .. } => {
                self.wants_kind("workspace")
                    && self.job.is_none()
                    && self.wants_worker(id.as_str())
                    && self.contract.is_none_or(|contract| contract == Contract::Molecule)
            }
        }
    }
}
