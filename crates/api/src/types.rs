//! The shapes of other ecosystems' surfaces, and their conversion from and to the core. Ours are in `reveille-api-types`.

pub mod agent;
pub mod molecule;
pub mod openorca;
