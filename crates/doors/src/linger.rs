//! Hanging up so that the client still reads why.
//!
//! A socket that is closed while input waits in it resets the connection, and the reset overtakes
//! the error that was just written. So after an error the rest of what the client had on its way is
//! read and thrown away, for a moment.

use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};

/// How long a client may go on sending after it was told off.
const LINGER_MAX: Duration = Duration::from_secs(1);

const DISCARDED_AT_ONCE: usize = 16 * 1024;

/// Reads until the client hangs up too, or the moment is over.
pub(crate) async fn linger(mut reader: impl AsyncRead + Unpin) {
    let mut discarded = vec![0; DISCARDED_AT_ONCE];
    let until_the_end = async { while reader.read(&mut discarded).await.is_ok_and(|len| len > 0) {} };
    let _ = tokio::time::timeout(LINGER_MAX, until_the_end).await;
}
