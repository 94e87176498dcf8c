//! What goes over HTTP, and its conversion from and to the core, one file a noun.

pub mod job;
pub mod key;
pub mod submit;
pub mod text;
pub mod worker;
