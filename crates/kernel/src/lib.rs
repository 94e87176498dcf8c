//! The safety kernel as a service: the port through which the engine asks somebody else's, its gRPC
//! adapter, and the generated services with which we are one ourselves.
//!
//! Deliberately not here: the circuit breaker, deadlines and fail modes. The engine has them, so that the
//! simulation can break a kernel too. A kernel is asked once.

mod client;
pub mod convert;

pub use client::{BadTarget, GrpcKernel, KernelKey, KernelTarget};

use bytes::Bytes;
use reveille_core::id::{JobId, WorkerId};
use reveille_core::output::OutputVerdict;
use reveille_core::policy::Verdict;
use reveille_core::request::Request;

/// Services of the package `cordum.agent.v1`.
#[allow(clippy::all, clippy::pedantic, unused_qualifications, rustdoc::all)]
pub mod cap {
    include!(concat!(env!("OUT_DIR"), "/cordum.agent.v1.rs"));
}

/// Services of the package `cordum.v1`.
#[allow(clippy::all, clippy::pedantic, unused_qualifications, rustdoc::all)]
pub mod cordum {
    include!(concat!(env!("OUT_DIR"), "/cordum.v1.rs"));
}

/// Bytes of a job's input that go along with the question.
pub const INPUT_LEN_MAX: usize = 64 * 1024;
/// The longest result that is sent to be looked at: gRPC servers take messages of up to 4 MiB.
pub const RESULT_LEN_MAX: usize = 4 * 1024 * 1024 - 64 * 1024;

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// The kernel is away, hangs, or is broken: others will fare no better.
    #[error("{0}")]
    Down(String),
    /// It answers, and not this question: too large, not understood, not allowed. That says nothing about
    /// the next one.
    #[error("{0}")]
    Refused(String),
}

/// What the kernel is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The job will run if it may.
    Check,
    /// Nothing will happen.
    Evaluate,
    Simulate,
    Explain,
}

/// A result that is to be looked at.
pub struct OutputQuestion<'a> {
    pub id: &'a JobId,
    pub request: &'a Request,
    pub worker: Option<&'a WorkerId>,
    pub result_ptr: &'a str,
    pub len: u64,
    pub execution_ms: i64,
    /// Nothing at the first look.
    pub content: Option<Bytes>,
}

/// What was said of it, and where the redacted copy is if there is one.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputScan {
    pub verdict: OutputVerdict,
    pub redacted_ptr: Option<String>,
}

/// The port. Dropping a future of it gives up on the question.
#[async_trait::async_trait]
pub trait Kernel: Send + Sync + 'static {
    /// Where it is, for people.
    fn address(&self) -> &str;

    /// May this job run? `input` is what it is to work on, if that is known.
    async fn judge(
        &self,
        request: &Request,
        input: Option<&Bytes>,
        purpose: Purpose,
    ) -> Result<Verdict, NoAnswer>;

    /// May this result be read?
    async fn scan_output(&self, result: OutputQuestion<'_>) -> Result<OutputScan, NoAnswer>;
}
