//! Workers: who is there, and who is to get no more jobs.

use crate::client::segment;
use crate::jobs::said;
use crate::{Client, Error, Pages};
use reveille_api_types::drain::{DrainRequest, Drained, Undrained};
use reveille_api_types::worker::Worker;
use serde_json::Map;

const PATH: &str = "/api/v1/workers";

#[derive(Debug, Clone, Copy)]
pub struct Workers<'a>(pub(crate) &'a Client);

impl<'a> Workers<'a> {
    /// The whole fleet, or the members of a contract: cap, voicegateway or molecule.
    pub fn list(&self, contract: Option<&str>) -> Pages<'a, Worker> {
        self.0.list(PATH, &said(&[("contract", contract)]), usize::MAX)
    }

    pub fn get(&self, worker_id: &str) -> Result<Worker, Error> {
        self.0.get(&path(worker_id), &[])
    }

    /// Gives it no more jobs. Those it has may stay for so long, 300 s unless told; then they go elsewhere.
    pub fn drain(&self, worker_id: &str, timeout_seconds: Option<u32>) -> Result<Drained, Error> {
        self.0.post(&format!("{}/drain", path(worker_id)), &DrainRequest { timeout_seconds })
    }

    /// Puts it back.
    pub fn undrain(&self, worker_id: &str) -> Result<Undrained, Error> {
        self.0.post(&format!("{}/undrain", path(worker_id)), &Map::new())
    }
}

fn path(worker_id: &str) -> String {
    format!("{PATH}/{}", segment(worker_id))
}
