//! `reveille doctor`: whether Redis, NATS and PostgreSQL are fit to be stood on. It changes nothing there.

use crate::args::DoctorArgs;
use crate::config::{Config, EngineOptions};
use crate::{exit, output, progress};
use anyhow::{Context, Result};
use reveille_core::finding::Finding;
use reveille_engine::{Clock, SystemClock};
use reveille_store::{MemoryLedger, RedisStore};
use serde_json::json;
use std::process::ExitCode;
use std::sync::Arc;

pub fn run(doctor: &DoctorArgs) -> Result<ExitCode> {
    let config = Config::for_engines(doctor)?;
    let Some(engines) = EngineOptions::of(&config.redis, &config.nats, &config.postgres)? else {
        output::line("one server by itself: its data is in its folder, and there is nothing else to look at");
        return Ok(ExitCode::SUCCESS);
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("the runtime")?;
    let looked_at = "looking at Redis, NATS and PostgreSQL";
    let found = progress::during(looked_at, || runtime.block_on(examine(engines)));
    let is_fit = !found.iter().any(|(_, finding)| finding.is_bad());
    if doctor.json {
        let items: Vec<_> = found
            .iter()
            .map(|(engine, finding)| json!({ "engine": engine, "grade": finding.grade(), "finding": finding.words() }))
            .collect();
        output::json(&json!({ "fit": is_fit, "findings": items }));
    } else {
        let rows: Vec<Vec<String>> = found
            .iter()
            .map(|(engine, finding)| [engine, finding.grade(), finding.words()].map(str::to_owned).to_vec())
            .collect();
        output::table(&["ENGINE", "GRADE", "FINDING"], &rows);
    }
    Ok(if is_fit { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

async fn examine(engines: EngineOptions) -> Vec<(&'static str, Finding)> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let now = clock.now();
    let redis = async {
        let ledger = Arc::new(MemoryLedger::default());
        RedisStore::open(engines.redis, ledger, Arc::new(move || clock.now())).await?.examine().await
    };
    let (redis, nats, postgres) = tokio::join!(
        redis,
        reveille_bus::examine(&engines.nats),
        reveille_roster::examine(&engines.postgres, now)
    );
    let mut found = Vec::new();
    let mut add = |engine, looked: Result<Vec<Finding>, String>| {
        let looked = looked.unwrap_or_else(|words| vec![Finding::Bad(words)]);
        found.extend(looked.into_iter().map(|finding| (engine, finding)));
    };
    add("Redis", redis.map_err(|error| error.to_string()));
    add("NATS", nats.map_err(|error| error.to_string()));
    add("PostgreSQL", postgres.map_err(|error| error.to_string()));
    found
}
