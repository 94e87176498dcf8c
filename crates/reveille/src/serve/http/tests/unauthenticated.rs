//! Those who show no valid key, as they come through a real listener.

use super::*;
use reveille_core::rate::Rate;
use reveille_engine::{LimitSettings, Settings};
use reveille_roster::Scope;
use reveille_test_kit::{TestServer, TestWorld};

struct Guarded {
    server: TestServer,
    key: String,
    served: Served,
}

/// Three calls without a valid key at once, and one a second.
async fn guarded(trusted: &[&str]) -> Guarded {
    let limits = LimitSettings { unauthenticated: Some(Rate::new(1, 3)), ..LimitSettings::default() };
    let settings = Settings { limits, ..Settings::default() };
    let server = TestWorld::new().engine().settings(settings).start().await;
    let key = server.key("ann", "acme", &[Scope::Read]).await;
    let console = reveille_console::router(server.engine.clone(), Vec::new());
    let router = reveille_api::router(server.engine.clone()).merge(console);
    let trusted: Vec<_> = trusted.iter().map(|entry| (*entry).to_owned()).collect();
    let limits = HttpLimits {
        trusted_proxies: Arc::new(AddressRules::parse(&trusted).unwrap()),
        unauthenticated: Some(UnauthenticatedLimit::new(server.engine.clone())),
        ..HttpLimits::new(64)
    };
    Guarded { server, key, served: served_with(router, limits).await }
}

impl Guarded {
    async fn get(&self, path: &str, headers: &str) -> String {
        self.served
            .ask(&format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}\r\n"))
            .await
    }

    async fn sign_in(&self, key: &str) -> String {
        let body = format!("key={key}");
        let kind = "content-type: application/x-www-form-urlencoded";
        let head = format!("host: x\r\nconnection: close\r\n{kind}\r\ncontent-length: {}", body.len());
        self.served.ask(&format!("POST /ui/sign-in HTTP/1.1\r\n{head}\r\n\r\n{body}")).await
    }

    /// Calls until one is turned away; a slow machine gives some of the calls back.
    async fn turned_away(&self, path: &str, headers: &str) -> String {
        for _ in 0..100 {
            let answer = self.get(path, headers).await;
            if answer.starts_with("HTTP/1.1 429") {
                return answer;
            }
            assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
        }
        panic!("{path} was never refused");
    }
}

#[tokio::test]
async fn whoever_tries_keys_is_told_when_to_come_back_and_a_valid_key_at_the_same_address_is_served() {
    let guarded = guarded(&[]).await;
    let wrong = "x-api-key: vk_wrong\r\n";
    let answer = guarded.turned_away("/api/v1/jobs", wrong).await;
    assert!(answer.contains("retry-after: 1") && answer.contains("\"code\":\"address_limited\""), "{answer}");
    for path in ["/api/v1/workers", "/v1/agents", "/registry/11111111-1111-4111-8111-111111111111/peers"] {
        let valid = guarded.get(path, &format!("x-api-key: {}\r\n", guarded.key)).await;
        assert!(!valid.starts_with("HTTP/1.1 4") || valid.starts_with("HTTP/1.1 404"), "{path}: {valid}");
    }
    guarded.turned_away("/v1/agents", "").await;
    let told = guarded.turned_away("/v1/agents", wrong).await;
    assert!(told.contains("\"detail\""), "in the words of its surface: {told}");
    assert!(guarded.get("/healthz", "").await.starts_with("HTTP/1.1 200"));
    let limited = guarded.get("/metrics", "").await;
    let limited =
        limited.lines().find(|line| line.contains("limited") && line.contains("\"address\"")).unwrap();
    assert!(!limited.ends_with(" 0"), "{limited}");
    drop(guarded.server);
}

#[tokio::test]
async fn sign_in_attempts_are_counted_and_the_right_key_still_signs_in() {
    let guarded = guarded(&[]).await;
    let mut refused = String::new();
    for _ in 0..100 {
        refused = guarded.sign_in("vk_wrong").await;
        if !refused.starts_with("HTTP/1.1 401") {
            break;
        }
    }
    assert!(refused.starts_with("HTTP/1.1 429") && refused.contains("retry-after: 1"), "{refused}");
    assert!(refused.contains("text/html"), "{refused}");
    assert!(guarded.get("/ui/sign-in", "").await.starts_with("HTTP/1.1 200"), "the form is there");
    let answer = guarded.sign_in(&guarded.key).await;
    assert!(answer.starts_with("HTTP/1.1 303") && answer.contains("set-cookie"), "{answer}");
}

#[tokio::test]
async fn behind_a_trusted_proxy_each_client_is_counted_by_itself() {
    let proxied = guarded(&["loopback"]).await;
    proxied.turned_away("/api/v1/jobs", "x-forwarded-for: 198.51.100.1\r\n").await;
    proxied.turned_away("/api/v1/jobs", "x-forwarded-for: 203.0.113.9, 198.51.100.1\r\n").await;
    let other = proxied.get("/api/v1/jobs", "x-forwarded-for: 198.51.100.2\r\n").await;
    assert!(other.starts_with("HTTP/1.1 401"), "{other}");

    let direct = guarded(&[]).await;
    for number in 0..100 {
        let claims = format!("x-forwarded-for: 198.51.100.{number}\r\n");
        if direct.get("/api/v1/jobs", &claims).await.starts_with("HTTP/1.1 429") {
            return;
        }
    }
    panic!("a stranger had a new address for each call");
}
