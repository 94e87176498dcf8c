//! The roster as this server writes and reads it: one writer, hints for those who read Redis beside us, and copies
//! that are refreshed when another server has changed them.

mod hints;
mod refresh;
mod writer;

pub use hints::RosterHints;
pub use refresh::{Refresh, RosterCopy};
pub use writer::{RosterBatch, RosterTask, RosterWriter};
