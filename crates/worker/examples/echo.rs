//! Answers every `job.echo` with its own input: `cargo run --example echo -- echo-1`.
//!
//! An input such as `{"sleep_ms": 5000}` is held for that long first. One with `{"fail": true}` fails for good.

use reveille_worker::{Connect, Error, Failure, Job, Worker};
use serde_json::Value;
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let id = std::env::args().nth(1).unwrap_or_else(|| "echo-1".to_owned());

    // It mostly runs beside its server, whose load is no reason to give it nothing.
    let worker = Worker::new(id).pool("echo").capacity(64).keep_load_private().handle(
        "job.echo",
        |job: Job| async move {
            let input: Value = job.input()?;
            if let Some(sleep_ms) = input["sleep_ms"].as_u64() {
                tokio::time::sleep(Duration::from_millis(sleep_ms)).await;
            }
            if input["fail"] == true {
                return Err(Failure::fatal("it was asked to"));
            }
            Ok::<_, Failure>(input)
        },
    );

    let ctrl_c = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    worker.run(Connect::from_env(), ctrl_c).await
}
