//! One file a noun; each asks the server and prints what it said.

pub mod approval;
pub mod audit;
pub mod dlq;
pub mod doctor;
pub mod job;
pub mod key;
pub mod policy;
pub mod pool;
pub mod quarantine;
pub mod run;
pub mod system;
pub mod tools;
pub mod top;
pub mod worker;
pub mod worker_key;
pub mod workflow;
