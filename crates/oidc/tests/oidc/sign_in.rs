//! The way of a browser to the provider and back.

use crate::{NOON, ann, at, provider};
use reveille_oidc::{AWAY_FLOOR_MS, OidcError, PendingSignIn, TokenError};
use reveille_test_kit::{REDIRECT_URL, TestProvider};
use std::collections::HashMap;
use url::Url;

fn pending(byte: u8) -> PendingSignIn {
    PendingSignIn::new(&[byte; 96], "/ui/jobs", at(600_000))
}

/// What the provider sends the browser back with.
async fn code(provider: &TestProvider, url: &str) -> String {
    let back = provider.visit(url).await;
    assert!(back.starts_with(REDIRECT_URL), "{back}");
    let back: HashMap<String, String> = Url::parse(&back).unwrap().query_pairs().into_owned().collect();
    back["code"].clone()
}

#[tokio::test]
async fn a_code_is_good_once_and_only_for_who_began() {
    let (provider, oidc) = provider().await;
    provider.at_browser(&ann());
    let ours = pending(1);
    let url = oidc.authorization_url(&ours, NOON).await.unwrap();
    let granted = code(&provider, &url).await;
    let person = oidc.redeem(&ours, &granted, NOON).await.unwrap();
    assert_eq!((person.subject.as_str(), person.groups.len()), ("248289", 2));
    let replayed = oidc.redeem(&ours, &granted, NOON).await;
    assert_eq!(replayed, Err(OidcError::CodeRefused("invalid_grant".to_owned())));

    let stolen = code(&provider, &url).await;
    let thief = PendingSignIn { verifier: pending(2).verifier, ..ours.clone() };
    let refused = oidc.redeem(&thief, &stolen, NOON).await;
    assert_eq!(refused, Err(OidcError::CodeRefused("invalid_grant".to_owned())), "PKCE");
    for nonsense in ["", "made-up", &"x".repeat(5_000)] {
        assert!(matches!(oidc.redeem(&ours, nonsense, NOON).await, Err(OidcError::CodeRefused(_))));
    }
}

#[tokio::test]
async fn a_token_of_another_sign_in_is_refused() {
    let (provider, oidc) = provider().await;
    provider.at_browser(&ann());
    provider.mix_up_nonces();
    let url = oidc.authorization_url(&pending(1), NOON).await.unwrap();
    let granted = code(&provider, &url).await;
    let refused = oidc.redeem(&pending(1), &granted, NOON).await;
    assert_eq!(refused, Err(OidcError::Token(TokenError::Nonce)));
}

#[tokio::test]
async fn a_public_client_needs_no_secret() {
    let (provider, _) = provider().await;
    provider.at_browser(&ann());
    provider.be_public();
    let oidc = provider.oidc();
    let url = oidc.authorization_url(&pending(1), NOON).await.unwrap();
    let granted = code(&provider, &url).await;
    assert!(oidc.redeem(&pending(1), &granted, NOON).await.is_ok());
}

#[tokio::test]
async fn a_provider_that_is_away_or_is_another_signs_nobody_in() {
    let (provider, oidc) = provider().await;
    provider.go_away();
    assert!(matches!(oidc.authorization_url(&pending(1), NOON).await, Err(OidcError::Away(_))));
    provider.come_back();
    assert!(
        matches!(oidc.authorization_url(&pending(1), at(1)).await, Err(OidcError::Away(_))),
        "not so soon"
    );
    assert!(oidc.authorization_url(&pending(1), at(AWAY_FLOOR_MS)).await.is_ok());

    let mut settings = provider.settings();
    settings.issuer.push('/');
    let other = reveille_oidc::Oidc::new(settings).unwrap();
    let refused = other.authorization_url(&pending(1), NOON).await;
    assert!(
        matches!(&refused, Err(OidcError::Unusable(why)) if why.contains("is of the issuer")),
        "{refused:?}"
    );
}
