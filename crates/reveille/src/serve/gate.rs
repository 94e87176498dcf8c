//! Who may come in through the doors: the same keys as over HTTP.
//!
//! A worker takes jobs of every tenant, so its key must be an operator's; any other key that may write
//! submits and cancels jobs of its own tenant.

use reveille_doors::{Denied, Gate, Guest, Role};
use reveille_engine::Engine;
use reveille_roster::Scope;

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
                let caller =
                    self.engine.access().authenticate(secret).filter(|caller| caller.may(Scope::Write));
                let caller = caller.ok_or(Denied)?;
                let role = if caller.may(Scope::Admin) { Role::Worker } else { Role::Submitter };
                Ok(Guest { tenant: caller.tenant.clone(), role, key: Some(caller.key.clone()) })
            }
        }
    }
}
