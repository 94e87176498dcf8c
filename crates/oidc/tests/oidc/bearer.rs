//! Tokens that programs and people show.

use crate::{NOON, ann, at, provider};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reveille_oidc::{
    AWAY_FLOOR_MS, KEYS_AGE_MS_MAX, LEEWAY_MS, Oidc, PERSON_NAME_LEN_MAX, REFRESH_FLOOR_MS, TOKEN_LEN_MAX,
    TokenError,
};
use reveille_test_kit::{TestAlgorithm, TestPerson, TestProvider};
use serde_json::{Value, json};

#[tokio::test]
async fn a_token_of_the_provider_says_who_somebody_is() {
    let (provider, oidc) = provider().await;
    for algorithm in [TestAlgorithm::Es256, TestAlgorithm::EdDsa, TestAlgorithm::Rs256] {
        let token = provider.sign(algorithm, &provider.claims(&ann()));
        oidc.learn_keys_of(&token, NOON).await;
        let person = oidc.verify_bearer(&token, NOON).unwrap();
        assert_eq!((person.issuer.as_str(), person.subject.as_str()), (oidc.issuer(), "248289"));
        assert_eq!((person.name.as_str(), person.until), ("ann", at(3_600_000)), "{algorithm:?}");
        assert_eq!(person.groups, ["dev", "ops"]);
    }
    assert_eq!(provider.keys_fetched(), 1);
}

/// A token whose claims are changed before it is signed.
fn with(provider: &TestProvider, name: &str, value: Value) -> String {
    let mut claims = provider.claims(&ann());
    if value.is_null() {
        claims.as_object_mut().unwrap().remove(name);
    } else {
        claims[name] = value;
    }
    provider.sign(TestAlgorithm::Es256, &claims)
}

/// A token whose header is changed after it was signed.
fn with_header(token: &str, header: &Value) -> String {
    let (_, rest) = token.split_once('.').unwrap();
    format!("{}.{rest}", URL_SAFE_NO_PAD.encode(header.to_string()))
}

#[tokio::test]
async fn a_token_that_is_not_the_providers_or_not_for_us_or_not_for_now_is_refused() {
    let (provider, oidc) = provider().await;
    let good = provider.token(&ann());
    oidc.learn_keys_of(&good, NOON).await;
    let (noon, signature) = (NOON.0 / 1000, good.rsplit('.').next().unwrap());
    let other_claims = with(&provider, "sub", json!("1"));
    let tampered = format!("{}.{signature}", other_claims.rsplit_once('.').unwrap().0);
    let claims = provider.claims(&ann());
    let long = with(&provider, "padding", json!("x".repeat(TOKEN_LEN_MAX)));
    let unsigned = provider.sign(TestAlgorithm::None, &claims);
    for (what, token, error) in [
        ("another audience", with(&provider, "aud", json!("another")), TokenError::Audience),
        ("audiences without us", with(&provider, "aud", json!(["a", "b"])), TokenError::Audience),
        ("no audience", with(&provider, "aud", Value::Null), TokenError::Audience),
        ("another issuer", with(&provider, "iss", json!("https://evil.example")), TokenError::Issuer),
        ("no issuer", with(&provider, "iss", Value::Null), TokenError::Issuer),
        ("expired", with(&provider, "exp", json!(noon - LEEWAY_MS / 1000)), TokenError::Expired),
        ("no end", with(&provider, "exp", Value::Null), TokenError::Expired),
        ("an end that is none", with(&provider, "exp", json!("later")), TokenError::Expired),
        ("too early", with(&provider, "nbf", json!(noon + 60)), TokenError::TooEarly),
        ("no subject", with(&provider, "sub", Value::Null), TokenError::Subject),
        ("an empty subject", with(&provider, "sub", json!("")), TokenError::Subject),
        ("not signed", unsigned.clone(), TokenError::Unreadable),
        (
            "not signed, and says otherwise",
            with_header(&unsigned, &json!({"alg": "ES256", "kid": "ec-1"})),
            TokenError::Signature,
        ),
        ("HS256 with the public key", provider.sign(TestAlgorithm::Hs256, &claims), TokenError::Algorithm),
        ("claims of another token", tampered, TokenError::Signature),
        (
            "a key of another kind",
            with_header(&good, &json!({"alg": "RS256", "kid": "ec-1"})),
            TokenError::UnknownKey,
        ),
        (
            "a key that nobody has",
            with_header(&good, &json!({"alg": "ES256", "kid": "x"})),
            TokenError::UnknownKey,
        ),
        (
            "a critical header",
            with_header(&good, &json!({"alg": "ES256", "kid": "ec-1", "crit": ["b64"]})),
            TokenError::Unreadable,
        ),
        ("too long", long, TokenError::Unreadable),
        ("no token", "a.b.c".to_owned(), TokenError::Unreadable),
    ] {
        oidc.learn_keys_of(&token, NOON).await;
        assert_eq!(oidc.verify_bearer(&token, NOON), Err(error), "{what}");
    }
    assert!(oidc.verify_bearer(&good, NOON).is_ok());
    for (skew, token) in
        [("exp", noon - 20), ("nbf", noon + 20)].map(|(name, at)| (name, with(&provider, name, json!(at))))
    {
        assert!(oidc.verify_bearer(&token, NOON).is_ok(), "clocks differ a little: {skew}");
    }
    let several = with(&provider, "aud", json!(["another", "reveille"]));
    assert!(oidc.verify_bearer(&several, NOON).is_ok());
}

#[tokio::test]
async fn a_rotated_key_is_learned_and_the_old_one_is_believed_no_more() {
    let (provider, oidc) = provider().await;
    let old = provider.token(&ann());
    oidc.learn_keys_of(&old, NOON).await;
    provider.rotate();
    let new = provider.token(&ann());
    let later = at(REFRESH_FLOOR_MS);
    assert_eq!(oidc.verify_bearer(&new, later), Err(TokenError::UnknownKey));
    oidc.learn_keys_of(&new, later).await;
    assert!(oidc.verify_bearer(&new, later).is_ok());
    assert_eq!(oidc.verify_bearer(&old, later), Err(TokenError::UnknownKey));
}

#[tokio::test]
async fn made_up_keys_do_not_make_us_call_the_provider() {
    let (provider, oidc) = provider().await;
    let good = provider.token(&ann());
    oidc.learn_keys_of(&good, NOON).await;
    for number in 0..100 {
        let made_up = with_header(&good, &json!({"alg": "ES256", "kid": format!("made-up-{number}")}));
        oidc.learn_keys_of(&made_up, at(number * 100)).await;
    }
    assert_eq!(provider.keys_fetched(), 1, "ten seconds are less than the floor");
    let made_up = with_header(&good, &json!({"alg": "ES256", "kid": "made-up"}));
    oidc.learn_keys_of(&made_up, at(REFRESH_FLOOR_MS)).await;
    oidc.learn_keys_of(&made_up, at(REFRESH_FLOOR_MS + 1)).await;
    assert_eq!(provider.keys_fetched(), 2);
}

#[tokio::test]
async fn a_provider_that_is_away_is_asked_again_and_its_last_keys_stay_good() {
    let (provider, oidc) = provider().await;
    provider.go_away();
    let token = provider.token(&ann());
    oidc.learn_keys_of(&token, NOON).await;
    assert_eq!(oidc.verify_bearer(&token, NOON), Err(TokenError::NoKeys));
    provider.come_back();
    oidc.learn_keys_of(&token, at(1)).await;
    assert_eq!(oidc.verify_bearer(&token, at(1)), Err(TokenError::NoKeys), "it was just asked");
    oidc.learn_keys_of(&token, at(AWAY_FLOOR_MS)).await;
    assert!(oidc.verify_bearer(&token, at(AWAY_FLOOR_MS)).is_ok());

    provider.go_away();
    let (much_later, mut claims) = (at(KEYS_AGE_MS_MAX + AWAY_FLOOR_MS), provider.claims(&ann()));
    claims["exp"] = json!(much_later.0 / 1000 + 60);
    let token = provider.sign(TestAlgorithm::Es256, &claims);
    oidc.learn_keys_of(&token, much_later).await;
    assert!(oidc.verify_bearer(&token, much_later).is_ok(), "what was known last holds");
}

#[tokio::test]
async fn groups_are_found_by_name_or_by_path_and_names_are_made_plain() {
    let (provider, _) = provider().await;
    let mut settings = provider.settings();
    settings.groups_claim = "realm_access.roles".to_owned();
    let oidc = Oidc::new(settings).unwrap();
    let odd = TestPerson::new("1", &format!("a\nn{}", "é".repeat(PERSON_NAME_LEN_MAX)), &[]);
    for (place, value, groups) in [
        ("realm_access", json!({"roles": ["a", 7, "", "b"]}), &["a", "b"][..]),
        ("realm_access.roles", json!("one"), &["one"]),
        ("realm_access", json!(null), &[]),
        ("groups", json!(["another claim"]), &[]),
    ] {
        let mut claims = provider.claims(&odd);
        claims[place] = value;
        let token = provider.sign(TestAlgorithm::Es256, &claims);
        oidc.learn_keys_of(&token, NOON).await;
        let person = oidc.verify_bearer(&token, NOON).unwrap();
        assert_eq!(person.groups, groups, "{place}");
        assert!(person.name.starts_with("ané") && person.name.len() <= PERSON_NAME_LEN_MAX);
    }
}
