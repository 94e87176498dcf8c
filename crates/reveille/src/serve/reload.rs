//! Operators edit their files while we run. A bad edit is reported and changes nothing.

use reveille_engine::{Engine, RuleFiles};
use std::time::Duration;

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// `seen` is what the files were before they were read for the start, so that no edit falls in between.
pub async fn watch(engine: Engine, files: RuleFiles, mut seen: Vec<Option<String>>) {
    if files == RuleFiles::default() {
        return;
    }
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let now = fingerprint(&files).await;
        if now == seen {
            continue;
        }
        seen = now;
        match files.load() {
            Ok(rules) => {
                tracing::info!(snapshot = rules.policy.snapshot(), "rules reloaded");
                engine.use_rules(rules);
            }
            Err(error) => {
                tracing::error!(%error, "the new rules cannot be used; the old ones stay in force");
                engine.refuse_rules(&error);
            }
        }
    }
}

async fn fingerprint(files: &RuleFiles) -> Vec<Option<String>> {
    let files = files.clone();
    tokio::task::spawn_blocking(move || files.fingerprint()).await.unwrap_or_default()
}
