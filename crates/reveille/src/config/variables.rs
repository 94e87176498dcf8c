//! Settings from the environment, over those of the file.

use anyhow::{Result, bail};

pub(super) const SECTIONS: &[&str] = &[
    "http",
    "doors",
    "data",
    "redis",
    "nats",
    "postgres",
    "files",
    "jobs",
    "approvals",
    "fleet",
    "auth",
    "oidc",
    "audit",
    "a2a",
    "output",
    "safety",
    "grpc",
    "tracing",
    "limits",
    "log",
];

/// The seeds' variables, and OpenTelemetry's, each with the setting that it is here.
pub(super) const SEEDS: &[(&str, &str, &str)] = &[
    ("API_RATE_LIMIT_RPS", "limits", "requests_per_second"),
    ("API_RATE_LIMIT_BURST", "limits", "requests_burst"),
    ("WORKER_SNAPSHOT_INTERVAL", "fleet", "snapshot_interval"),
    ("OUTPUT_POLICY_ENABLED", "output", "enabled"),
    ("OUTPUT_POLICY_FAIL_MODE", "output", "fail_mode"),
    ("POLICY_CHECK_FAIL_MODE", "safety", "fail_mode"),
    ("SAFETY_KERNEL_ADDR", "safety", "address"),
    ("SAFETY_KERNEL_TLS_CA", "safety", "tls_ca"),
    ("SAFETY_KERNEL_TLS_REQUIRED", "safety", "tls_required"),
    ("SAFETY_KERNEL_INSECURE", "safety", "insecure"),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "tracing", "otlp_endpoint"),
    ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "tracing", "otlp_traces_endpoint"),
    ("OTEL_EXPORTER_OTLP_HEADERS", "tracing", "otlp_headers"),
    ("OTEL_SERVICE_NAME", "tracing", "service_name"),
    ("OTEL_TRACES_SAMPLER_ARG", "tracing", "sample_ratio"),
];

/// Keys whose values are text, also where they look like a number.
const TEXTS: &[&str] = &[
    "address",
    "admin",
    "url",
    "user",
    "prefix",
    "folder",
    "open_tenant",
    "tenant",
    "level",
    "service_name",
];
/// Keys that are so or not.
const TRUTHS: &[&str] = &[
    "enabled",
    "hold",
    "insecure",
    "json",
    "open",
    "open_registration",
    "require_key",
    "tls_required",
    "warm_start",
];

/// The environment, as far as it is text.
pub fn all() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// Puts what variables say over what the file says. An empty variable counts as not set, and ours count more
/// than those of the reference.
pub fn overlay(
    table: &mut toml::Table,
    vars: impl Iterator<Item = (String, String)>,
    name: &str,
) -> Result<()> {
    let vars: Vec<(String, String)> = vars.filter(|(_, value)| !value.is_empty()).collect();
    let seeds = vars.iter().filter_map(|(variable, value)| {
        let (_, section, key) = SEEDS.iter().find(|(name, ..)| name == variable)?;
        Some((variable, (*section).to_owned(), (*key).to_owned(), value))
    });
    let ours = vars.iter().filter_map(|(variable, value)| {
        let (section, key) = variable.strip_prefix("REVEILLE_")?.split_once('_')?;
        let section = section.to_lowercase();
        SECTIONS.contains(&section.as_str()).then(|| (variable, section, key.to_lowercase(), value))
    });
    for (variable, section, key, value) in seeds.chain(ours) {
        let entry = table.entry(section.clone()).or_insert_with(|| toml::Table::new().into());
        let toml::Value::Table(entry) = entry else {
            bail!("{name}: {variable} names a section that is not a table")
        };
        let value = typed(&section, &key, value);
        entry.insert(key, value);
    }
    Ok(())
}

/// A number or a truth value if it looks like one and may be one, else text.
fn typed(section: &str, key: &str, value: &str) -> toml::Value {
    let word = value.to_lowercase();
    match word.as_str() {
        _ if TEXTS.contains(&key) || matches!(section, "tracing" | "oidc") => value.into(),
        "true" => true.into(),
        "false" => false.into(),
        "1" if TRUTHS.contains(&key) => true.into(),
        "0" if TRUTHS.contains(&key) => false.into(),
        _ if key == "fail_mode" => word.into(),
        _ => value.parse::<i64>().map_or_else(|_| value.into(), Into::into),
    }
}
