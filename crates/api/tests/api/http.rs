//! The HTTP surface over a real engine.

mod acts;
mod approvals;
mod attacks;
mod audit;
mod dead_letters;
mod described;
mod dry_run;
mod events;
mod jobs;
mod keys;
mod limits;
mod molecule;
mod openorca;
mod output;
mod overview;
mod people;
mod policy;
mod pools;
mod rights;
mod support;
mod trace;
mod voicegateway;
mod watched;
mod workflows;
