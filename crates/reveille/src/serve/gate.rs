//! Who may come in through the doors: the same keys as over HTTP.
//!
//! A worker's key makes a worker that takes what its grant names; an operator's makes one that takes jobs of every
//! tenant. Any other key that may write submits and cancels jobs of its own tenant.

use reveille_core::id::WorkerId;
use reveille_doors::{Denied, Gate, Guest, Role, Standing};
use reveille_engine::{Caller, Engine, KeyStanding};
use reveille_roster::Scope;
use reveille_store::Blobs;
use std::sync::Arc;

pub struct KeyGate {
    pub engine: Engine,
    /// Whether a client without a key is let in, as the default tenant.
    pub open: bool,
}

#[async_trait::async_trait]
impl Gate for KeyGate {
    async fn admit(&self, secret: Option<&str>) -> Result<Guest, Denied> {
        match secret {
            None if self.open => {
                let tenant = self.engine.settings().default_tenant.clone();
                Ok(Guest { tenant, role: Role::Worker, key: None })
            }
            None => Err(Denied),
            Some(secret) => {
                let caller = self.engine.access().authenticate(secret).ok_or(Denied)?;
                let role = role(&caller).ok_or(Denied)?;
                Ok(Guest { tenant: caller.tenant.clone(), role, key: Some(caller.key.clone()) })
            }
        }
    }

    fn standing(&self, guest: &Guest) -> Standing {
        // Whether the door is open does not change while the server runs.
        let Some(key) = &guest.key else { return Standing::Valid };
        match self.engine.access().key_standing(key) {
            KeyStanding::Valid(caller)
                if role(&caller).as_ref() == Some(&guest.role) && caller.tenant == guest.tenant =>
            {
                Standing::Valid
            }
            KeyStanding::Valid(_) | KeyStanding::Revoked => Standing::Revoked,
            KeyStanding::Expired => Standing::Expired,
        }
    }

    fn claim(&self, guest: &Guest, worker: &str) -> bool {
        let Role::LimitedWorker { credential, .. } = &guest.role else { return false };
        let Ok(worker) = WorkerId::parse(worker) else { return false };
        self.engine.fleet().claim(&worker, &guest.tenant, Some(credential)).is_ok()
    }

    fn blobs(&self, guest: &Guest) -> Option<Arc<dyn Blobs>> {
        match &guest.role {
            Role::LimitedWorker { credential, .. } => Some(self.engine.jobs().blobs_of(credential)),
            Role::Worker | Role::Submitter => None,
        }
    }
}

/// What a key makes of whoever shows it, if it opens the doors at all.
fn role(caller: &Caller) -> Option<Role> {
    let submits = caller.may(Scope::Submit);
    match &caller.worker {
        _ if caller.may(Scope::Admin) => Some(Role::Worker),
        Some(credential) => Some(Role::LimitedWorker { credential: credential.clone(), submits }),
        None => submits.then_some(Role::Submitter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_core::fleet::{ServedTenants, WorkerGrant};
    use reveille_core::id::TenantId;
    use reveille_core::time::Millis;
    use reveille_engine::NewKey;
    use reveille_test_kit::{NOON, TestWorld};

    fn key(tenant: &str, scopes: &[Scope], expires_at: Option<Millis>) -> NewKey {
        NewKey {
            name: "worker".to_owned(),
            tenant: TenantId::known(tenant),
            scopes: scopes.to_vec(),
            worker: None,
            expires_at,
            created_by: "test".to_owned(),
            issued_by: None,
            project_ids: None,
        }
    }

    /// A guest who came in with the operator's key, and then the key became this one.
    async fn standing_after(gate: &KeyGate, new: NewKey) -> Standing {
        let access = gate.engine.access();
        access.keep_key("secret", key("acme", &[Scope::Admin], None)).await.unwrap();
        let guest = gate.admit(Some("secret")).await.unwrap();
        assert_eq!((&guest.role, gate.standing(&guest)), (&Role::Worker, Standing::Valid));
        access.keep_key("secret", new).await.unwrap();
        gate.standing(&guest)
    }

    #[tokio::test(start_paused = true)]
    async fn a_guest_stays_as_long_as_its_key_makes_it_the_same_guest() {
        let engine = TestWorld::new().start().await.engine;
        let gate = KeyGate { engine: engine.clone(), open: true };
        for (new, standing) in [
            (key("acme", &[Scope::Admin, Scope::Read], None), Standing::Valid),
            (key("acme", &[Scope::Admin], Some(NOON + 3_600_000)), Standing::Valid),
            (key("acme", &[Scope::Write], None), Standing::Revoked),
            (key("acme", &[Scope::Read], None), Standing::Revoked),
            (key("beta", &[Scope::Admin], None), Standing::Revoked),
            (key("acme", &[Scope::Admin], Some(NOON)), Standing::Expired),
        ] {
            let told = format!("{:?} of {:?}, until {:?}", new.scopes, new.tenant, new.expires_at);
            assert_eq!(standing_after(&gate, new).await, standing, "{told}");
        }
        let nobody = gate.admit(None).await.unwrap();
        assert_eq!(gate.standing(&nobody), Standing::Valid);

        engine.access().keep_key("secret", key("acme", &[Scope::Admin], None)).await.unwrap();
        let guest = gate.admit(Some("secret")).await.unwrap();
        engine.access().revoke_key(guest.key.as_ref().unwrap(), "ann").await.unwrap();
        assert_eq!(gate.standing(&guest), Standing::Revoked);
    }

    async fn guest(gate: &KeyGate, secret: &str, new: NewKey) -> Result<Guest, Denied> {
        gate.engine.access().keep_key(secret, new).await.unwrap();
        gate.admit(Some(secret)).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_key_makes_a_worker_of_its_tenant_and_needs_no_admin() {
        let engine = TestWorld::new().start().await.engine;
        let gate = KeyGate { engine: engine.clone(), open: false };
        let ours = guest(&gate, "w", key("acme", &[Scope::Worker], None)).await.unwrap();
        assert_eq!(ours.role.tenants(), ServedTenants::only(&TenantId::known("acme")));
        assert!(ours.role.may_publish("sys.heartbeat") && !ours.role.may_publish("sys.job.submit"));
        assert!(gate.blobs(&ours).is_some() && gate.claim(&ours, "w1"));
        let both = guest(&gate, "both", key("acme", &[Scope::Worker, Scope::Write], None)).await.unwrap();
        assert!(both.role.may_publish("sys.job.submit"));
        let operator = guest(&gate, "op", key("ops", &[Scope::Worker, Scope::Admin], None)).await.unwrap();
        assert_eq!(operator.role, Role::Worker);
        for scope in [Scope::Read, Scope::Ingest] {
            assert!(guest(&gate, scope.as_str(), key("acme", &[scope], None)).await.is_err());
        }
        let submitter = guest(&gate, "s", key("acme", &[Scope::Write], None)).await.unwrap();
        assert!(gate.blobs(&submitter).is_none() && !gate.claim(&submitter, "w2"));

        let theirs = key("beta", &[Scope::Worker], None);
        let theirs = guest(&gate, "b", theirs).await.unwrap();
        assert!(!gate.claim(&theirs, "w1"), "the name is another's");
        assert!(!gate.claim(&theirs, "not a name"));

        let grant = WorkerGrant { topics: ["job.echo".to_owned()].into(), ..WorkerGrant::default() };
        let narrowed = NewKey { worker: Some(grant), ..key("acme", &[Scope::Worker], None) };
        engine.access().keep_key("w", narrowed).await.unwrap();
        assert_eq!(gate.standing(&ours), Standing::Revoked, "its key lets it serve something else now");
    }
}
