//! A small identity provider (OIDC) on loopback: discovery, sign-in that asks nothing, codes with PKCE, keys that change.
//!
//! It signs by itself and shares no code with what checks its tokens.

use crate::clock::TestClock;
use crate::http::{Reply, TestHttp, serve};
use axum::extract::{Form, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use reveille_engine::Clock;
use reveille_oidc::{ClientSecret, Oidc, OidcSettings};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
    RsaPublicKeyComponents,
};
use ring::{digest, hmac};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use url::Url;

pub const CLIENT_ID: &str = "reveille";
pub const CLIENT_SECRET: &str = "s3cret & more";
/// Where the console is, as far as the provider knows.
pub const REDIRECT_URL: &str = "http://127.0.0.1:8080/ui/oidc/callback";

/// Made for tests with `openssl genpkey`; nothing else was ever signed with it.
const RSA_KEY: &[u8] = include_bytes!("rsa_test_key.der");

/// How a token is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestAlgorithm {
    Es256,
    EdDsa,
    Rs256,
    /// With the bytes of the public key as the shared secret.
    Hs256,
    None,
}

/// Somebody who has an account there.
#[derive(Clone, Debug)]
pub struct TestPerson {
    pub subject: String,
    pub name: String,
    pub groups: Vec<String>,
}

impl TestPerson {
    pub fn new(subject: &str, name: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        Self { subject: subject.to_owned(), name: name.to_owned(), groups }
    }
}

/// A handle; clones are the same provider.
#[derive(Clone)]
pub struct TestProvider {
    pub issuer: String,
    http: TestHttp,
    state: Arc<Mutex<ProviderState>>,
    clock: Arc<TestClock>,
}

struct ProviderState {
    issuer: String,
    signers: Signers,
    generation: u32,
    is_away: bool,
    fetched: usize,
    /// Who is at the browser.
    person: Option<TestPerson>,
    codes: HashMap<String, IssuedCode>,
    /// What a token says instead of the nonce that was asked for.
    nonce: Option<String>,
    /// Whether there is a secret to know.
    is_public: bool,
}

struct IssuedCode {
    challenge: String,
    nonce: String,
    person: TestPerson,
}

struct Signers {
    ec: EcdsaKeyPair,
    ed: Ed25519KeyPair,
    rsa: RsaKeyPair,
}

impl Signers {
    fn new() -> Self {
        let random = SystemRandom::new();
        let ec = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let ed = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        Self {
            ec: EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, ec.as_ref(), &random).unwrap(),
            ed: Ed25519KeyPair::from_pkcs8(ed.as_ref()).unwrap(),
            rsa: RsaKeyPair::from_pkcs8(RSA_KEY).unwrap(),
        }
    }
}

impl TestProvider {
    pub async fn start(clock: Arc<TestClock>) -> Self {
        let state = Arc::new(Mutex::new(ProviderState {
            issuer: String::new(),
            signers: Signers::new(),
            generation: 1,
            is_away: false,
            fetched: 0,
            person: None,
            codes: HashMap::new(),
            nonce: None,
            is_public: false,
        }));
        let shared = Shared { state: state.clone(), clock: clock.clone() };
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(discover))
            .route("/keys", get(keys))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .with_state(shared);
        let issuer = serve(router.clone()).await;
        state.lock().unwrap().issuer.clone_from(&issuer);
        Self { issuer, http: TestHttp::new(router), state, clock }
    }

    /// How a server is told of it.
    pub fn settings(&self) -> OidcSettings {
        let is_public = self.state.lock().unwrap().is_public;
        OidcSettings {
            issuer: self.issuer.clone(),
            client_id: CLIENT_ID.to_owned(),
            client_secret: (!is_public).then(|| ClientSecret(CLIENT_SECRET.to_owned())),
            redirect_url: REDIRECT_URL.to_owned(),
            scopes: vec!["openid".to_owned(), "email".to_owned()],
            groups_claim: "groups".to_owned(),
            audience: CLIENT_ID.to_owned(),
        }
    }

    pub fn oidc(&self) -> Oidc {
        Oidc::new(self.settings()).unwrap()
    }

    /// This person is at the browser from now on.
    pub fn at_browser(&self, person: &TestPerson) {
        self.state.lock().unwrap().person = Some(person.clone());
    }

    /// Other keys from now on; the old ones are published no more.
    pub fn rotate(&self) {
        let mut state = self.state.lock().unwrap();
        state.signers = Signers::new();
        state.generation += 1;
    }

    pub fn go_away(&self) {
        self.state.lock().unwrap().is_away = true;
    }

    pub fn come_back(&self) {
        self.state.lock().unwrap().is_away = false;
    }

    /// Tokens name another sign-in from now on.
    pub fn mix_up_nonces(&self) {
        self.state.lock().unwrap().nonce = Some("another".to_owned());
    }

    /// The client has no secret from now on.
    pub fn be_public(&self) {
        self.state.lock().unwrap().is_public = true;
    }

    /// How often its keys were asked for.
    pub fn keys_fetched(&self) -> usize {
        self.state.lock().unwrap().fetched
    }

    /// What a token of this person says, for an hour.
    pub fn claims(&self, person: &TestPerson) -> Value {
        claims(&self.issuer, person, self.clock.now().0 / 1000)
    }

    /// A token of this person, as a program would show it.
    pub fn token(&self, person: &TestPerson) -> String {
        self.sign(TestAlgorithm::Es256, &self.claims(person))
    }

    pub fn sign(&self, algorithm: TestAlgorithm, claims: &Value) -> String {
        sign(&self.state.lock().unwrap(), algorithm, claims)
    }

    /// What a browser does at this address of ours: where it is sent, and with which answer.
    pub async fn visit(&self, url: &str) -> String {
        let path = url.strip_prefix(&self.issuer).unwrap();
        let reply: Reply = self.http.send("GET", path, &[], "").await;
        assert_eq!(reply.status, 303, "{}", reply.text());
        reply.header("location").to_owned()
    }
}

#[derive(Clone)]
struct Shared {
    state: Arc<Mutex<ProviderState>>,
    clock: Arc<TestClock>,
}

fn claims(issuer: &str, person: &TestPerson, now: i64) -> Value {
    json!({
        "iss": issuer, "sub": person.subject, "aud": CLIENT_ID, "iat": now, "nbf": now, "exp": now + 3600,
        "preferred_username": person.name, "groups": person.groups,
    })
}

fn sign(state: &ProviderState, algorithm: TestAlgorithm, claims: &Value) -> String {
    let (name, kind) = match algorithm {
        TestAlgorithm::Es256 => ("ES256", "ec"),
        TestAlgorithm::EdDsa => ("EdDSA", "ed"),
        TestAlgorithm::Rs256 => ("RS256", "rsa"),
        TestAlgorithm::Hs256 => ("HS256", "ec"),
        TestAlgorithm::None => ("none", "ec"),
    };
    let header = json!({"typ": "JWT", "alg": name, "kid": format!("{kind}-{}", state.generation)});
    let coded = |json: &Value| URL_SAFE_NO_PAD.encode(json.to_string());
    let message = format!("{}.{}", coded(&header), coded(claims));
    let (random, bytes) = (SystemRandom::new(), message.as_bytes());
    let Signers { ec, ed, rsa } = &state.signers;
    let signature = match algorithm {
        TestAlgorithm::Es256 => ec.sign(&random, bytes).unwrap().as_ref().to_vec(),
        TestAlgorithm::EdDsa => ed.sign(bytes).as_ref().to_vec(),
        TestAlgorithm::Rs256 => {
            let mut signature = vec![0; rsa.public().modulus_len()];
            rsa.sign(&RSA_PKCS1_SHA256, &random, bytes, &mut signature).unwrap();
            signature
        }
        TestAlgorithm::Hs256 => {
            let key = hmac::Key::new(hmac::HMAC_SHA256, ec.public_key().as_ref());
            hmac::sign(&key, bytes).as_ref().to_vec()
        }
        TestAlgorithm::None => Vec::new(),
    };
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
}

async fn discover(State(shared): State<Shared>) -> Response {
    let state = shared.state.lock().unwrap();
    if state.is_away {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let issuer = &state.issuer;
    Json(json!({
        "issuer": issuer, "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"), "jwks_uri": format!("{issuer}/keys"),
        "response_types_supported": ["code"], "id_token_signing_alg_values_supported": ["ES256", "RS256"],
    }))
    .into_response()
}

async fn keys(State(shared): State<Shared>) -> Response {
    let mut state = shared.state.lock().unwrap();
    state.fetched += 1;
    if state.is_away {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let coded = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let Signers { ec, ed, rsa } = &state.signers;
    // Uncompressed: a byte that says so, then both halves.
    let (x, y) = ec.public_key().as_ref()[1..].split_at(32);
    let id = |kind: &str| format!("{kind}-{}", state.generation);
    let RsaPublicKeyComponents { n, e } = RsaPublicKeyComponents::<Vec<u8>>::from(rsa.public());
    Json(json!({"keys": [
        {"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": id("ec"), "x": coded(x), "y": coded(y)},
        {"kty": "OKP", "crv": "Ed25519", "use": "sig", "kid": id("ed"), "x": coded(ed.public_key().as_ref())},
        {"kty": "RSA", "kid": id("rsa"), "n": coded(&n), "e": coded(&e)},
        {"kty": "unheard of", "kid": "x"},
    ]}))
    .into_response()
}

async fn authorize(State(shared): State<Shared>, Query(asked): Query<HashMap<String, String>>) -> Redirect {
    let mut state = shared.state.lock().unwrap();
    let is = |name: &str, value: &str| assert_eq!(asked[name], value, "{name}");
    is("response_type", "code");
    is("client_id", CLIENT_ID);
    is("redirect_uri", REDIRECT_URL);
    is("scope", "openid email");
    is("code_challenge_method", "S256");
    let code = format!("code-{}", state.codes.len() + 1);
    let person = state.person.clone().expect("somebody at the browser");
    let issued =
        IssuedCode { challenge: asked["code_challenge"].clone(), nonce: asked["nonce"].clone(), person };
    state.codes.insert(code.clone(), issued);
    let mut back = Url::parse(&asked["redirect_uri"]).unwrap();
    back.query_pairs_mut().append_pair("code", &code).append_pair("state", &asked["state"]);
    Redirect::to(back.as_str())
}

async fn token(
    State(shared): State<Shared>,
    headers: HeaderMap,
    Form(asked): Form<HashMap<String, String>>,
) -> Response {
    let mut state = shared.state.lock().unwrap();
    if state.is_away {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let refused = |error: &str| (StatusCode::BAD_REQUEST, Json(json!({"error": error}))).into_response();
    let coded = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let basic = format!("Basic {}", STANDARD.encode(format!("{CLIENT_ID}:{}", coded(CLIENT_SECRET))));
    let shown = headers.get("authorization").map_or("", |value| value.to_str().unwrap());
    let is_known = if state.is_public {
        asked.get("client_id").is_some_and(|id| id == CLIENT_ID)
    } else {
        shown == basic
    };
    if !is_known {
        return refused("invalid_client");
    }
    // A code is good once, whatever comes of it.
    let Some(issued) = asked.get("code").and_then(|code| state.codes.remove(code)) else {
        return refused("invalid_grant");
    };
    let verifier = digest::digest(&digest::SHA256, asked["code_verifier"].as_bytes());
    if URL_SAFE_NO_PAD.encode(verifier) != issued.challenge || asked["redirect_uri"] != REDIRECT_URL {
        return refused("invalid_grant");
    }
    let mut claims = claims(&state.issuer, &issued.person, shared.clock.now().0 / 1000);
    claims["nonce"] = state.nonce.clone().unwrap_or(issued.nonce).into();
    let token = sign(&state, TestAlgorithm::Rs256, &claims);
    Json(json!({"access_token": "opaque", "token_type": "Bearer", "id_token": token})).into_response()
}
