//! A workspace in the registry: `cargo run --example workspace -- http://127.0.0.1:8080 <uuid> http://localhost:8000`.

use std::time::Duration;

use reveille_worker::{Enrolment, Error, Workspace};
use serde_json::json;
use tokio::time::sleep;

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let mut arguments = std::env::args().skip(1);
    let mut next = |default: &str| arguments.next().unwrap_or_else(|| default.to_owned());
    let workspace = Workspace::new(Enrolment {
        platform_url: next("http://127.0.0.1:8080"),
        id: next("7f1c9a52-5d6e-4a3b-9c64-0f2d8e1b7a90"),
        url: next("http://localhost:8000"),
        agent_card: json!({ "name": "example", "description": "An example", "version": "1", "skills": [] }),
    });

    let agent = workspace.handle();
    tokio::spawn(async move {
        loop {
            sleep(Duration::from_secs(20)).await;
            let _task = agent.task("counting to ten");
            sleep(Duration::from_secs(10)).await;
            agent.errors().ok();
        }
    });
    let ctrl_c = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    workspace.run(ctrl_c).await
}
