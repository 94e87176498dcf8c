//! An agent that is seen on the roster, busy for ten seconds of every thirty:
//! `VOICEGW_COLLECTOR_URL=http://127.0.0.1:8080 VOICEGW_API_KEY=vk_… cargo run --example agent`.

use std::time::Duration;

use reveille_worker::{Registration, register_worker};
use tokio::time::sleep;

#[tokio::main]
async fn main() {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let presence = register_worker(Registration::from_env("example").version(env!("CARGO_PKG_VERSION")));

    let calls = async {
        loop {
            sleep(Duration::from_secs(20)).await;
            let _session = presence.session();
            sleep(Duration::from_secs(10)).await;
        }
    };
    tokio::select! {
        () = calls => {}
        _ = tokio::signal::ctrl_c() => presence.stop(),
    }
}
