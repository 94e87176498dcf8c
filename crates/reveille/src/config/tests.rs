mod reference;

use super::*;
use reveille_core::rate::Rate;

fn parse(text: &str, vars: &[(&str, &str)]) -> Result<Config> {
    let vars = vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Config::parse(text, "reveille.toml", vars)
}

#[test]
fn a_variable_overrides_the_file_and_others_are_left_alone() {
    let config = parse(
        "[http]\naddress = \"1.2.3.4:5\"\n[jobs]\nkeep_days = 3\n",
        &[
            ("REVEILLE_JOBS_KEEP_DAYS", "9"),
            ("REVEILLE_DOORS_REQUIRE_KEY", "true"),
            ("REVEILLE_OPERATOR_KEY", "x"),
            ("HOME", "/"),
        ],
    )
    .unwrap();
    assert_eq!((config.http.address.as_str(), config.jobs.keep_days), ("1.2.3.4:5", 9));
    assert_eq!(config.doors.require_key, Some(true));
    let config =
        parse("", &[("WORKER_SNAPSHOT_INTERVAL", "500ms"), ("REVEILLE_A2A_ALLOW", "loopback, 10.0.0.0/8")]);
    let config = config.unwrap();
    assert_eq!(config.fleet.snapshot_every().unwrap(), Duration::from_millis(500));
    assert_eq!(config.a2a.allow, ["loopback", "10.0.0.0/8"]);
    // As compose files have them: empty, in capitals, one for true, and theirs beside ours in any order.
    let vars = [
        ("REVEILLE_SAFETY_ADDRESS", "ours:1"),
        ("SAFETY_KERNEL_ADDR", "theirs:1"),
        ("SAFETY_KERNEL_INSECURE", "1"),
        ("SAFETY_KERNEL_TLS_CA", ""),
        ("POLICY_CHECK_FAIL_MODE", "OPEN"),
        ("REVEILLE_FLEET_SNAPSHOT_INTERVAL", "5"),
        ("REVEILLE_AUTH_OPEN_TENANT", "7"),
    ];
    let config = parse("", &vars).unwrap();
    assert_eq!(config.safety.address.as_deref(), Some("ours:1"));
    assert_eq!((config.safety.insecure, config.safety.tls_ca), (true, None));
    assert_eq!(config.safety.fail_mode, Some(FailMode::Open));
    assert_eq!(config.fleet.snapshot_every().unwrap(), Duration::from_secs(5));
    assert_eq!(config.auth.open_tenant, "7");
    assert_eq!(config.approvals.expire_after().unwrap(), None);
    for (text, seconds) in [("\"24h\"", 86_400), ("90", 90), ("\"90\"", 90)] {
        let config = parse(&format!("[approvals]\nexpire_after = {text}"), &[]).unwrap();
        assert_eq!(config.approvals.expire_after().unwrap(), Some(Duration::from_secs(seconds)));
    }
    assert_eq!(parse("", &[]).unwrap(), Config::default());
    assert_eq!(Config::default().limits.calls(), None);
    let config = parse("[limits]\nrequests_per_second = 3", &[("API_RATE_LIMIT_RPS", "5")]).unwrap();
    assert_eq!(config.limits.calls(), Some(Rate::new(5, 10)));
}

#[test]
fn seed_004_section_2_the_variable_turns_output_policy_on_and_off() {
    assert_eq!(parse("", &[]).unwrap().output.enabled, None, "off, unless the policy says otherwise");
    for (file, variable, enabled) in
        [("", "true", true), ("", "false", false), ("[output]\nenabled = true", "false", false)]
    {
        let config = parse(file, &[("OUTPUT_POLICY_ENABLED", variable)]).unwrap();
        assert_eq!(config.output.enabled, Some(enabled), "{file:?} {variable}");
    }
}

#[test]
fn a_misspelt_setting_is_named() {
    for (text, vars, part) in [
        ("[http]\nadress = \"x\"", &[][..], "adress"),
        ("[jobs]\nkeep_days = \"soon\"", &[][..], "keep_days"),
        ("", &[("REVEILLE_JOBS_KEEPDAYS", "1")][..], "keepdays"),
        ("nonsense", &[][..], "reveille.toml"),
        ("[http]\nconnections_max = 0", &[][..], "http.connections_max"),
        ("[doors]\ntls_cert = \"c.pem\"", &[][..], "doors.tls_key is missing"),
        ("[fleet]\nsnapshot_interval = \"soon\"", &[][..], "fleet.snapshot_interval"),
        ("[approvals]\nexpire_after = \"soon\"", &[][..], "approvals.expire_after"),
        ("[approvals]\nexpire_after = 0", &[][..], "approvals.expire_after"),
        ("[fleet]\ncap_ttl_seconds = 0", &[][..], "fleet.cap_ttl_seconds"),
        ("[a2a]\nallow = [\"everywhere\"]", &[][..], "a2a.allow"),
        ("[approvals]\nexpire_after = \"99999999999999999h\"", &[][..], "approvals.expire_after"),
        ("", &[("SAFETY_KERNEL_TLS_REQUIRED", "true")][..], "safety.address is missing"),
        ("[limits]\nqueued_per_tenant = 0", &[][..], "limits.queued_per_tenant"),
        ("", &[("API_RATE_LIMIT_BURST", "9")][..], "limits.requests_burst"),
        ("", &[("REVEILLE_DOORS_TLS_KEY", "k.pem")][..], "doors.tls_cert is missing"),
        ("[tracing]\notlp_endpoint = \"collector:4318\"", &[][..], "tracing.otlp_endpoint"),
        ("[tracing]\nsample_ratio = 1.5", &[][..], "tracing.sample_ratio"),
        ("", &[("OTEL_TRACES_SAMPLER_ARG", "half")][..], "tracing.sample_ratio"),
        ("", &[("OTEL_EXPORTER_OTLP_HEADERS", "secret")][..], "tracing.otlp_headers"),
    ] {
        let error = format!("{:#}", parse(text, vars).unwrap_err());
        assert!(error.contains(part), "{error}");
    }
}
