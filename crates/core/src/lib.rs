//! The pure heart of Reveille: what a job, a worker and a policy are, and what may happen to them.
//!
//! Nothing here reads a clock, draws a random number, logs, locks or touches the outside. Every
//! decision is a function from values to a value; the shell (`reveille-engine`) commits what was
//! decided and then sends what is owed.

pub mod address;
pub mod approval;
pub mod audit;
pub mod backoff;
pub mod breaker;
pub mod cost;
pub mod digest;
pub mod expression;
pub mod finding;
pub mod fleet;
pub mod flow;
pub mod id;
pub mod identity;
pub mod job;
pub mod life;
pub mod output;
pub mod placement;
pub mod policy;
pub mod presence;
pub mod quota;
pub mod rate;
pub mod reason;
pub mod reconcile;
pub mod request;
pub mod retry;
pub mod scan;
pub mod time;
pub mod trace;
mod words;
