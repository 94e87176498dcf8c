//! What somebody with a credential of their own, or with none, may try. Each test is named after its attack, and passes
//! where the attack comes to nothing.

mod blobs;
mod four_eyes;
mod policy;
mod quotas;
mod trail;
mod workspaces;
