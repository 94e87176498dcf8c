//! What must be right before a bus opens, and the error if it is not.

use super::{foreign_client, open, options, soon, streams};
use async_nats::jetstream::stream::Config;
use reveille_bus::{Login, NatsBus, NatsOptions, NatsTls, Secret, suite};
use reveille_test_servers::Nats;
use std::path::Path;
use std::time::Duration;

async fn problem(options: NatsOptions) -> String {
    soon(NatsBus::open(options)).await.err().expect("it does not open").to_string()
}

#[tokio::test]
async fn a_stream_of_somebody_else_in_our_way_is_named() {
    for (subject, ours) in [("sys.>", "sys.job.submit"), ("worker.*.jobs", "worker.>"), ("job.>", "job.>")] {
        let nats = Nats::start();
        let context = async_nats::jetstream::new(foreign_client(&nats).await);
        let theirs = Config { name: "THEIRS".into(), subjects: vec![subject.into()], ..Config::default() };
        context.create_stream(theirs).await.unwrap();
        let problem = problem(options(&nats)).await;
        for words in ["THEIRS", subject, ours, "nats stream edit THEIRS"] {
            assert!(problem.contains(words), "{words}: {problem}");
        }
        // Nothing else was created.
        assert!(context.get_stream("CORDUM_DLQ").await.is_err());
    }
}

#[tokio::test]
async fn a_stream_of_our_name_that_works_otherwise_is_named() {
    let nats = Nats::start();
    let context = async_nats::jetstream::new(foreign_client(&nats).await);
    let theirs = Config {
        name: "CORDUM_SYS".into(),
        subjects: vec!["sys.job.submit".into(), "sys.job.result".into()],
        ..Config::default()
    };
    context.create_stream(theirs).await.unwrap();
    let problem = problem(options(&nats)).await;
    assert!(problem.contains("CORDUM_SYS") && problem.contains("retention Limits"), "{problem}");
}

#[tokio::test]
async fn a_second_bus_finds_the_streams_as_they_are() {
    let nats = Nats::start();
    let _first = open(&nats).await;
    let streams = streams(&nats).await;
    let stream = streams.get_stream("CORDUM_SYS").await.unwrap();
    let wider = Config { max_age: Duration::from_hours(1), ..stream.cached_info().config.clone() };
    streams.update_stream(wider).await.unwrap();
    let _second = open(&nats).await;
    let stream = streams.get_stream("CORDUM_SYS").await.unwrap();
    assert_eq!(stream.cached_info().config.max_age, Duration::from_hours(1), "an operator's limit stays");
    assert_eq!(stream.cached_info().config.subjects, ["sys.job.submit", "sys.job.result"]);

    // Other names on the same subjects conflict with these.
    let prefixed = NatsOptions { stream_prefix: "TEST_".to_owned(), ..options(&nats) };
    let problem = problem(prefixed).await;
    assert!(problem.contains("is in the way of"), "{problem}");
}

#[tokio::test]
async fn several_replicas_may_start_at_once() {
    let nats = Nats::start();
    let started = futures_util::future::join_all((0..8).map(|_| NatsBus::open(options(&nats)))).await;
    for bus in started {
        bus.unwrap();
    }
}

#[tokio::test]
async fn a_login_that_is_refused_is_told_without_its_secret() {
    let nats = Nats::start_with("authorization { user: reveille, password: right }");
    let login = |password: &str| Login::Password { user: "reveille".into(), password: Secret::new(password) };
    let refused = problem(NatsOptions { login: login("wr0ng"), ..options(&nats) }).await;
    assert!(refused.contains("does not accept user \"reveille\"") && !refused.contains("wr0ng"), "{refused}");
    assert!(problem(options(&nats)).await.contains("does not accept connections without a login"));
    NatsBus::open(NatsOptions { login: login("right"), ..options(&nats) }).await.unwrap();
    let address = format!("nats://reveille:right@127.0.0.1:{}", nats.port());
    NatsBus::open(NatsOptions { servers: vec![address], ..options(&nats) }).await.unwrap();

    let nats = Nats::start_with("authorization { token: right }");
    let login = |token: &str| Login::Token(Secret::new(token));
    assert!(problem(NatsOptions { login: login("wr0ng"), ..options(&nats) }).await.contains("this token"));
    NatsBus::open(NatsOptions { login: login("right"), ..options(&nats) }).await.unwrap();
}

#[tokio::test]
async fn a_login_that_may_not_hear_itself_is_told_which_subject() {
    let denied = r#"permissions: { subscribe: { deny: "_INBOX.heard.>" } }"#;
    let nats =
        Nats::start_with(&format!("authorization {{ users: [ {{ user: a, password: b, {denied} }} ] }}"));
    let login = Login::Password { user: "a".into(), password: Secret::new("b") };
    let problem = problem(NatsOptions { login, ..options(&nats) }).await;
    assert!(problem.contains("publish and subscribe on _INBOX.heard.>"), "{problem}");
}

#[tokio::test]
async fn an_nkey_opens_the_door() {
    // The pair from NATS's own documentation.
    const SEED: &str = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
    const PUBLIC: &str = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";
    let nats = Nats::start_with(&format!("authorization {{ users: [ {{ nkey: {PUBLIC} }} ] }}"));
    let login = |seed: &str| Login::Nkey(Secret::new(seed));
    NatsBus::open(NatsOptions { login: login(SEED), ..options(&nats) }).await.unwrap();
    assert!(problem(NatsOptions { login: login("nonsense"), ..options(&nats) }).await.contains("this nkey"));
}

#[tokio::test]
async fn what_is_not_there_is_said() {
    let mut nats = Nats::start();
    let file = Login::CredentialsFile("/nonexistent/reveille.creds".into());
    let missing = problem(NatsOptions { login: file, ..options(&nats) }).await;
    assert!(missing.contains("/nonexistent/reveille.creds"), "{missing}");
    let tls = NatsTls { authority: Some("/nonexistent/ca.pem".into()), ..NatsTls::default() };
    assert!(problem(NatsOptions { tls, ..options(&nats) }).await.contains("/nonexistent/ca.pem"));
    nats.server().kill();
    let nobody = problem(options(&nats)).await;
    assert!(nobody.contains("cannot be reached") && nobody.contains(&nats.port().to_string()), "{nobody}");
}

#[tokio::test]
async fn tls_with_certificates_on_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    let made = Certificates::make(folder.path());
    let nats = Nats::start_with(&format!(
        "tls {{ cert_file: {0:?}, key_file: {1:?}, ca_file: {2:?}, verify: true }}",
        made.server.0, made.server.1, made.authority
    ));
    let servers = vec![format!("tls://localhost:{}", nats.port())];
    let with = |tls: NatsTls| NatsOptions { servers: servers.clone(), tls, ..options(&nats) };
    let (authority, certificate) = (Some(made.authority.clone()), Some(made.client.clone()));
    let tls = NatsTls { authority: authority.clone(), certificate: certificate.clone(), required: true };
    suite::a_message_reaches_every_plain_subscriber(&NatsBus::open(with(tls)).await.unwrap()).await;
    let strangers = NatsTls { certificate, ..NatsTls::default() };
    assert!(problem(with(strangers)).await.contains("UnknownIssuer"));
    let nameless = NatsTls { authority, ..NatsTls::default() };
    assert!(problem(with(nameless)).await.contains("cannot be reached"));
}

type Pair = (std::path::PathBuf, std::path::PathBuf);

struct Certificates {
    authority: std::path::PathBuf,
    server: Pair,
    client: Pair,
}

impl Certificates {
    fn make(folder: &Path) -> Self {
        use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
        let write = |name: &str, text: String| {
            std::fs::write(folder.join(name), text).unwrap();
            folder.join(name)
        };
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = write("ca.pem", params.self_signed(&key).unwrap().pem());
        let issuer = Issuer::new(params, key);
        let pair = |name: &str, purpose| {
            let key = KeyPair::generate().unwrap();
            let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
            params.extended_key_usages = vec![purpose];
            let certificate = params.signed_by(&key, &issuer).unwrap();
            (
                write(&format!("{name}.pem"), certificate.pem()),
                write(&format!("{name}.key"), key.serialize_pem()),
            )
        };
        let server = pair("server", ExtendedKeyUsagePurpose::ServerAuth);
        let client = pair("client", ExtendedKeyUsagePurpose::ClientAuth);
        Self { authority, server, client }
    }
}
