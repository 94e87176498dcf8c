//! A CAP worker in twenty lines.
//!
//! ```no_run
//! use reveille_worker::{Connect, Failure, Job, Worker};
//! use serde_json::Value;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), reveille_worker::Error> {
//!     let worker = Worker::new("echo-1").pool("echo").capacity(64).handle("job.echo", |job: Job| async move {
//!         let input: Value = job.input()?;
//!         job.progress(50, "half way").await;
//!         Ok::<_, Failure>(input)
//!     });
//!     let ctrl_c = async {
//!         let _ = tokio::signal::ctrl_c().await;
//!     };
//!     worker.run(Connect::from_env(), ctrl_c).await
//! }
//! ```
//!
//! What the worker promises, whatever happens to NATS, Redis or the scheduler:
//!
//! - **A job runs once per attempt.** A repeated delivery is not run again; if the job has ended, its
//!   result is sent again. A newer attempt that arrives while an older one runs takes that run over:
//!   the handler is not called twice, and the result names the newest attempt.
//! - **A result is sent until somebody answers.** Results are requests; a scheduler answers once it has
//!   written the result down. What nobody answers is sent again, across restarts and reconnects, for
//!   up to two minutes of connection.
//! - **A job ends.** A panic is a failure, a cancellation or a passed deadline drops the handler's
//!   future, a blob store that stays away is a failure worth another try.
//! - **Everything has a limit**, and a job that was sent here is never dropped without a line in the log.
//!
//! The module of each idea: `intake` takes jobs, `ledger` knows them, `attempt` runs one, `results`
//! settles them, `beats` says that the worker lives, `signatures` signs and verifies where it was given keys. The trust
//! handshake is not here: a worker that signs needs none.
//!
//! Agents that take no jobs but want to be seen have two other contracts to choose from:
//!
//! - [`register_worker`] posts VoiceGateway heartbeats (`presence`);
//! - [`Workspace`] keeps a place in the Molecule registry and picks up the results of delegated work
//!   (`workspace`).
//!
//! Both speak HTTP through `http` and wait by `beat_schedule`.

mod assignment;
mod attempt;
mod beat_schedule;
mod beats;
mod blobs;
mod cancel;
mod clock;
mod connect;
mod error;
mod failure;
mod handler;
mod http;
mod intake;
mod job;
mod ledger;
mod load;
mod presence;
mod publisher;
mod results;
mod signatures;
mod traced_packet;
mod worker;
mod worker_context;
mod workspace;

pub use connect::Connect;
pub use error::Error;
pub use failure::Failure;
pub use job::Job;
pub use presence::{AgentPresence, Registration, Session, register_worker};
pub use worker::Worker;
pub use workspace::{Enrolment, ErrorTracker, RequestFault, Task, Workspace, WorkspaceHandle};
