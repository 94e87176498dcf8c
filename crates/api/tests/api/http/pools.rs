//! Pools: out of service and back, by those who may.

use super::support::{Api, USER};
use reveille_roster::Scope;
use serde_json::json;

#[tokio::test]
async fn only_an_operator_drains_a_pool_and_puts_it_back() {
    let api = Api::open().await;
    let (user, operator) = (api.key("acme", USER).await, api.key("default", &[Scope::Admin]).await);
    let call =
        async |key: &str, act: &str| api.call(key, "POST", &format!("/api/v1/pools/gpu/{act}"), "").await;
    assert_eq!(call(&user, "drain").await.0, 403);
    assert_eq!(call(&operator, "drain").await.0, 200);
    assert_eq!(api.engine.fleet().drains().len(), 1);
    assert_eq!(call(&user, "undrain").await.0, 403);
    assert_eq!(call(&operator, "undrain").await, (200, json!({"name": "gpu", "was_drained": true})));
    assert_eq!(call(&operator, "undrain").await.1["was_drained"], false);
    assert!(api.engine.fleet().drains().is_empty());
    let (status, pools) = api.call(&user, "GET", "/api/v1/pools", "").await;
    assert_eq!((status, &pools["items"]), (200, &json!([])));
}
