//! Handlers of any type behind one: a job goes in, JSON or a failure comes out.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;

use crate::failure::Failure;
use crate::job::Job;

pub type Handler = Arc<dyn Fn(Job) -> BoxFuture<'static, Result<Vec<u8>, Failure>> + Send + Sync>;

pub fn erased<F, Run, Output>(handler: F) -> Handler
where
    F: Fn(Job) -> Run + Send + Sync + 'static,
    Run: Future<Output = Result<Output, Failure>> + Send + 'static,
    Output: Serialize,
{
    Arc::new(move |job| {
        let run = handler(job);
        async move { json(&run.await?) }.boxed()
    })
}

fn json(output: &impl Serialize) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec(output).map_err(|error| Failure::failed(format!("output is not JSON: {error}")))
}
