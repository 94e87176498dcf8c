//! A PostgreSQL that asks for TLS and a password.

use reveille_roster::suite::{NOW, agent};
use reveille_roster::{Change, PostgresOptions, PostgresRoster, Roster, RosterError};
use reveille_test_servers::{Guard, Postgres};
use std::fs;

#[tokio::test]
async fn the_address_says_how_to_trust_the_server_and_the_password_may_come_apart() {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let guard = Guard { certificate: &certificate, key: &key, password: "open: sesame/%" };
    let server = Postgres::start_guarded(&guard);
    let folder = tempfile::tempdir().unwrap();
    let authority = folder.path().join("authority.pem");
    fs::write(&authority, &certificate).unwrap();
    let url = server.database();
    let trusting = format!("{url}?sslmode=verify-full&sslrootcert={}", authority.display());
    let with = async |url: &str, password: &str| {
        let options = PostgresOptions { url: url.to_owned(), password: Some(password.to_owned()) };
        PostgresRoster::open(&options).await
    };
    let refused = async |url: &str, password: &str, expected: &str| {
        let error = with(url, password).await.err().unwrap();
        assert!(matches!(&error, RosterError::Unavailable(words) if words.contains(expected)), "{error}");
        assert!(!error.to_string().contains(password), "{error}");
    };

    let roster = with(&trusting, guard.password).await.unwrap();
    roster.write(vec![Change::Presence(agent("guarded", "a", NOW))]).await.unwrap();
    assert_eq!(roster.presence(None, 9).await.unwrap().len(), 1);
    refused(&trusting, "guessed", "password authentication failed").await;
    refused(&format!("{url}?sslmode=disable"), guard.password, "no encryption").await;
    // The system's authorities do not know it.
    refused(&format!("{url}?sslmode=verify-full"), guard.password, "certificate").await;
    let elsewhere = trusting.replace("127.0.0.1", "localhost");
    refused(&elsewhere, guard.password, "not valid for name").await;
}
