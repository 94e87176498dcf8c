//! Over TLS: whom the client believes, and what it shows.

use rcgen::{CertifiedKey, KeyPair};
use reveille_client::{Client, Error};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

fn certificate() -> CertifiedKey<KeyPair> {
    rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap()
}

/// Somebody who answers one request over TLS, if the client shows what is asked for.
fn server(own: &CertifiedKey<KeyPair>, asks_for: Option<&CertifiedKey<KeyPair>>) -> String {
    let provider = Arc::new(ring::default_provider());
    let config =
        ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().unwrap();
    let config = match asks_for {
        None => config.with_no_client_auth(),
        Some(theirs) => {
            let mut roots = RootCertStore::empty();
            roots.add(theirs.cert.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            config.with_client_cert_verifier(verifier.unwrap())
        }
    };
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let config = Arc::new(config.with_single_cert(vec![own.cert.der().clone()], key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream =
                StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream.unwrap());
            let mut asked = [0; 4096];
            if stream.read(&mut asked).is_ok_and(|len| len > 0) {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{\"hello\":\"you\"}");
                let _ = stream.flush();
            }
        }
    });
    url
}

fn ask(client: &Client) -> Result<Value, Error> {
    client.get("/api/v1/status", &[])
}

#[test]
fn a_server_is_believed_if_the_named_authority_has_signed_it() {
    let own = certificate();
    let client = Client::new(&server(&own, None), "vk_secret").unwrap();
    let client = client.trusting(own.cert.pem().as_bytes()).unwrap();
    assert_eq!(ask(&client), Ok(json!({"hello": "you"})));
}

#[test]
fn nobody_is_believed_without_a_reason_to() {
    let own = certificate();
    let client = Client::new(&server(&own, None), "vk_secret").unwrap();
    let another = client.clone().trusting(certificate().cert.pem().as_bytes()).unwrap();
    for stranger in [client, another] {
        let error = ask(&stranger).unwrap_err();
        assert!(
            matches!(&error, Error::Unreachable { reason, .. } if reason.contains("certificate")),
            "{error}"
        );
        assert!(!error.to_string().contains("vk_secret"));
    }
}

#[test]
fn a_server_that_asks_for_a_certificate_is_shown_it() {
    let (own, theirs) = (certificate(), certificate());
    let client = Client::new(&server(&own, Some(&theirs)), "vk_secret").unwrap();
    let client = client.trusting(own.cert.pem().as_bytes()).unwrap();
    assert!(matches!(ask(&client), Err(Error::Unreachable { .. })));
    let key = theirs.signing_key.serialize_pem();
    let client = client.showing(theirs.cert.pem().as_bytes(), key.as_bytes()).unwrap();
    assert_eq!(ask(&client), Ok(json!({"hello": "you"})));
}

#[test]
fn what_is_no_certificate_or_key_is_refused_in_words() {
    let client = Client::new("https://127.0.0.1", "k").unwrap();
    let error = client.clone().trusting(b"nothing").unwrap_err();
    assert_eq!(error.to_string(), "the certificate authority: no certificate in this PEM");
    let error = client.showing(certificate().cert.pem().as_bytes(), b"nothing").unwrap_err();
    assert!(error.to_string().starts_with("the client's key: "), "{error}");
}
