//! Molecule's shapes, as its clients send and read them.

pub mod answer;
pub mod beat;
pub mod delegation;
pub mod event;
pub mod registration;
pub mod setup;
pub mod talk;
pub mod workspace;
