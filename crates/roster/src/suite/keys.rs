//! Keys and the tenants they make known.

use super::{NOW, key, workspace, write};
use crate::{Change, KeyRecord, Roster, Scope, Tenant};
use reveille_core::fleet::{ServedTenants, WorkerGrant};
use reveille_core::id::{KeyId, PoolId, TenantId};
use reveille_core::time::Millis;

pub async fn run(roster: &dyn Roster) {
    keys_are_read_back_by_id(roster).await;
    the_first_revocation_counts(roster).await;
    the_latest_use_counts(roster).await;
    a_key_is_replaced_once_and_ends_no_later(roster).await;
    a_key_can_be_written_anew(roster).await;
    a_tenant_is_known_by_its_name_a_key_or_a_workspace(roster).await;
}

pub async fn keys_are_read_back_by_id(roster: &dyn Roster) {
    let first = key("suite-keys", 1);
    let second = KeyRecord {
        scopes: Scope::ALL.to_vec(),
        worker: Some(WorkerGrant {
            topics: ["job.*".to_owned()].into(),
            pools: [PoolId::known("gpu")].into(),
            tenants: ServedTenants::only(&TenantId::known("acme")),
        }),
        expires_at: Some(NOW + 5),
        issued_by: Some("operator".to_owned()),
        project_ids: None,
        last_used_at: Some(NOW),
        ..key("suite-keys", 2)
    };
    for record in [&second, &first, &second] {
        write(roster, Change::Key(record.clone())).await;
    }
    assert_eq!(keys_of(roster, "suite-keys").await, [first, second]);
}

pub async fn the_first_revocation_counts(roster: &dyn Roster) {
    let record = key("suite-revoked", 1);
    let revoke =
        |id: &KeyId, at: Millis| Change::RevokeKey { id: id.clone(), at, by: format!("\0 at {}", at.0) };
    write(roster, Change::Key(record.clone())).await;
    for at in [NOW + 5, NOW + 9, NOW + 1] {
        write(roster, revoke(&record.id, at)).await;
    }
    let revoked_by = format!("\0 at {}", (NOW + 5).0);
    let revoked = KeyRecord { revoked_at: Some(NOW + 5), revoked_by, ..record };
    assert!(!revoked.is_valid(NOW));
    write(roster, revoke(&KeyId::known("suite-nobody"), NOW)).await;
    assert_eq!(keys_of(roster, "suite-revoked").await, [revoked], "it is revoked, and still there");
}

pub async fn the_latest_use_counts(roster: &dyn Roster) {
    let record = key("suite-used", 1);
    write(roster, Change::Key(record.clone())).await;
    for at in [NOW + 5, NOW + 9, NOW + 1] {
        write(roster, Change::KeyUsed { id: record.id.clone(), at }).await;
    }
    write(roster, Change::KeyUsed { id: KeyId::known("suite-nobody"), at: NOW }).await;
    let used = KeyRecord { last_used_at: Some(NOW + 9), ..record };
    assert_eq!(keys_of(roster, "suite-used").await, [used]);
}

pub async fn a_key_is_replaced_once_and_ends_no_later(roster: &dyn Roster) {
    let [old, next] = [1, 2].map(|number| key("suite-replaced", number));
    let next = KeyRecord { replaces: Some(old.id.clone()), ..next };
    let ending = KeyRecord { expires_at: Some(NOW + 3), ..key("suite-replaced", 3) };
    let replace = |id: &KeyId, by: &str, expires_at: Millis| Change::ReplaceKey {
        id: id.clone(),
        by: KeyId::known(by),
        expires_at,
    };
    let batch = vec![
        Change::Key(old.clone()),
        Change::Key(ending.clone()),
        Change::Key(next.clone()),
        replace(&old.id, next.id.as_str(), NOW + 7),
        replace(&ending.id, "suite-replaced-4", NOW + 7),
        Change::KeyUsed { id: old.id.clone(), at: NOW + 1 },
    ];
    roster.write(batch).await.unwrap();
    write(roster, replace(&old.id, "suite-replaced-5", NOW + 1)).await;
    write(roster, replace(&KeyId::known("suite-nobody"), "suite-replaced-6", NOW)).await;
    let (expires_at, last_used_at) = (Some(NOW + 7), Some(NOW + 1));
    let old = KeyRecord { expires_at, last_used_at, replaced_by: Some(next.id.clone()), ..old };
    let ending = KeyRecord { replaced_by: Some(KeyId::known("suite-replaced-4")), ..ending };
    assert_eq!(keys_of(roster, "suite-replaced").await, [old, next, ending]);
}

/// An operator who puts an old secret back into the environment means it.
pub async fn a_key_can_be_written_anew(roster: &dyn Roster) {
    let record = key("suite-anew", 1);
    let revoke = Change::RevokeKey { id: record.id.clone(), at: NOW, by: "bob".to_owned() };
    let replaced =
        Change::ReplaceKey { id: record.id.clone(), by: KeyId::known("suite-anew-2"), expires_at: NOW };
    let renewed = KeyRecord { hash: [0xa5; 32], name: "renewed".to_owned(), ..record.clone() };
    let batch = vec![Change::Key(record.clone()), replaced, revoke, Change::Key(renewed.clone())];
    roster.write(batch).await.unwrap();
    assert_eq!(keys_of(roster, "suite-anew").await, [renewed], "the same id is the same key");
}

pub async fn a_tenant_is_known_by_its_name_a_key_or_a_workspace(roster: &dyn Roster) {
    let tenant = |name: &str, created_at| Tenant { id: TenantId::known(name), created_at };
    let changes = vec![
        Change::Workspace(workspace("suite-tenant-c", "a")),
        Change::Tenant(tenant("suite-tenant-a", NOW + 1)),
        Change::Key(key("suite-tenant-b", 1)),
        Change::Key(KeyRecord { created_at: NOW + 7, ..key("suite-tenant-b", 2) }),
        Change::Tenant(tenant("suite-tenant-a", Millis(5))),
        Change::Tenant(tenant("suite-tenant-b", Millis(5))),
    ];
    roster.write(changes).await.unwrap();
    let mut known = roster.tenants().await.unwrap();
    known.retain(|tenant| tenant.id.as_str().starts_with("suite-tenant-"));
    let expected =
        [tenant("suite-tenant-a", NOW + 1), tenant("suite-tenant-b", NOW), tenant("suite-tenant-c", NOW)];
    assert_eq!(known, expected, "by id, each with the date it was first known");
}

async fn keys_of(roster: &dyn Roster, check: &str) -> Vec<KeyRecord> {
    let mut keys = roster.keys().await.unwrap();
    keys.retain(|key| key.tenant.as_str() == check);
    keys
}
