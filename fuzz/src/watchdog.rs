//! Notices an input that takes for ever, or all the memory, which no assertion in the target can.
//!
//! The thread that runs such an input cannot be stopped, so the process ends. The input is in its file by then.

use std::fs;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Far more than any input takes, also on a machine that does three other things.
const INPUT_MAX: Duration = Duration::from_secs(20);
/// Of the whole process, the inputs that are kept included.
const RSS_BYTES_MAX: u64 = 1 << 30;
const PAGE_BYTES: u64 = 4096;
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Watches until it is dropped.
pub struct Watchdog {
    begun: Instant,
    /// When the current input began, in milliseconds; zero between inputs.
    since_ms: Arc<AtomicU64>,
    _alive: mpsc::Sender<()>,
}

impl Watchdog {
    pub fn start(name: &'static str) -> Self {
        let (alive, ended) = mpsc::channel();
        let (begun, since_ms) = (Instant::now(), Arc::new(AtomicU64::new(0)));
        let watched = since_ms.clone();
        thread::spawn(move || {
            while ended.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                let since = watched.load(Ordering::Relaxed);
                let took = begun.elapsed().saturating_sub(Duration::from_millis(since));
                if since > 0 && took > INPUT_MAX {
                    end(name, &format!("an input takes more than {INPUT_MAX:?}"));
                }
                if resident_bytes() > RSS_BYTES_MAX {
                    end(name, &format!("takes more than {RSS_BYTES_MAX} bytes of memory"));
                }
            }
        });
        Self { begun, since_ms, _alive: alive }
    }

    pub fn input_begins(&self) {
        self.since_ms.store(self.begun.elapsed().as_millis() as u64 + 1, Ordering::Relaxed);
    }

    pub fn input_ends(&self) {
        self.since_ms.store(0, Ordering::Relaxed);
    }
}

fn end(name: &str, what: &str) -> ! {
    eprintln!("{name}: {what}; the input is in fuzz/found/{name}.running");
    process::exit(1);
}

/// Zero where the system does not say.
fn resident_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * PAGE_BYTES
}
