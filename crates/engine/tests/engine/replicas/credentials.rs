//! What ends at one server ends at the other.

use super::*;
use reveille_engine::NewKey;
use reveille_roster::Scope;

fn new_key() -> NewKey {
    NewKey {
        name: "ann".to_owned(),
        tenant: TenantId::known("acme"),
        scopes: vec![Scope::Read],
        worker: None,
        expires_at: None,
        created_by: "root".to_owned(),
        issued_by: None,
        project_ids: None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_ended_is_over_at_the_other_server_within_two_seconds() {
    let world = World::new();
    let servers = world.two().await;
    let (_, secret) = servers[0].access().create_key(new_key()).await.unwrap();
    sleep(2_000).await;
    let (session, token) = servers[1].access().begin_session(&secret).unwrap();
    let (another, its_token) = servers[1].access().begin_session(&secret).unwrap();
    assert!(servers[0].access().resume_session(&session, &token).is_some());
    assert!(servers[0].access().resume_session(&session, &its_token).is_none(), "another session's token");
    servers[1].access().end_session(&session).await.unwrap();
    assert!(servers[1].access().resume_session(&session, &token).is_none());
    sleep(2_000).await;
    assert!(servers[0].access().resume_session(&session, &token).is_none());
    assert!(servers[0].access().resume_session(&another, &its_token).is_some(), "others go on");
    servers[0].access().end_all_sessions(&session.key).await.unwrap();
    sleep(2_000).await;
    assert!(servers[1].access().resume_session(&another, &its_token).is_none());
    let (anew, token) = servers[1].access().begin_session(&secret).unwrap();
    assert!(servers[0].access().resume_session(&anew, &token).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_key_that_was_rotated_ends_at_the_other_server_and_its_successor_begins() {
    let world = World::new();
    let servers = world.two().await;
    let (old, secret) = servers[0].access().create_key(new_key()).await.unwrap();
    let (rotation, second) = servers[0].access().rotate_key(&old.id, 60_000, "root").await.unwrap();
    sleep(2_000).await;
    let opens = |secret: &str| servers[1].access().authenticate(secret).is_some();
    assert!(opens(&secret) && opens(&second));
    sleep(60_000).await;
    assert!(!opens(&secret) && opens(&second));
    let (_, third) = servers[1].access().rotate_key(&rotation.key.id, 0, "root").await.unwrap();
    sleep(2_000).await;
    assert!(servers[0].access().authenticate(&second).is_none());
    assert!(servers[0].access().authenticate(&third).is_some());
}
