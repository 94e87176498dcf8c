//! Ways to wait.

use std::time::Duration;

/// Nothing here takes this long on the busiest machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// What a future gives, which must not take long.
pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes too long")
}

/// Lets time pass, in small steps, so that the server's own ticks are not late.
pub async fn pass(seconds: u64) {
    for _ in 0..seconds * 4 {
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

/// Lets everything else go on until it is so. Takes no time of the test's own clock.
pub async fn eventually(is_so: impl AsyncFn() -> bool) {
    for round in 1..=100_000 {
        if is_so().await {
            return;
        }
        tokio::task::yield_now().await;
        if round % 10 == 0 {
            give_way();
        }
    }
    panic!("it did not come to that");
}

/// Other threads get their turn, however busy the machine is.
#[expect(
    clippy::disallowed_methods,
    reason = "the test's own clock may stand still, and no timer of it would end"
)]
fn give_way() {
    std::thread::sleep(Duration::from_millis(1));
}
