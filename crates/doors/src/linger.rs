//! Hanging up in a way that lets the client still read the reason.
//!
//! Closing a socket that has unread input resets the connection, and the reset overtakes the error that was just
//! written. So after an error, whatever the client still sends is briefly read and discarded.

use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};

/// How long a client may go on sending after an error was written to it.
const LINGER_MAX: Duration = Duration::from_secs(1);

const DISCARDED_AT_ONCE: usize = 16 * 1024;

/// Reads until the client hangs up too, or the time is over.
pub(crate) async fn linger(mut reader: impl AsyncRead + Unpin) {
    let mut discarded = vec![0; DISCARDED_AT_ONCE];
    let until_the_end = async { while reader.read(&mut discarded).await.is_ok_and(|len| len > 0) {} };
    let _ = tokio::time::timeout(LINGER_MAX, until_the_end).await;
}
