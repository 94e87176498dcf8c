//! How busy the machine is, and how big this process, as Linux tells it. Elsewhere nothing is known.

use std::fs;

/// Fewer ticks than this between two looks (a tick is mostly 10 ms of one core) say nothing: a moment in
/// which a connection was made again is busier than the machine is.
const TICKS_MIN: u64 = 200;

/// Measures the machine's processors between one look and the next.
pub struct CpuMeter {
    last: Ticks,
    load_percent: Option<f32>,
}

impl CpuMeter {
    pub fn new() -> Self {
        Self { last: look(), load_percent: None }
    }

    /// How busy all processors together were since the last look, in percent. Nothing until enough time
    /// has passed to tell.
    pub fn load_percent(&mut self) -> Option<f32> {
        self.advance(look());
        self.load_percent
    }

    fn advance(&mut self, now: Ticks) {
        let total = now.total.saturating_sub(self.last.total);
        if total < TICKS_MIN {
            return;
        }
        let idle = now.idle.saturating_sub(self.last.idle).min(total);
        self.load_percent = Some(percent(total - idle, total));
        self.last = now;
    }
}

/// How much of the machine's memory is in use, in percent.
pub fn memory_percent() -> f32 {
    fs::read_to_string("/proc/meminfo").ok().and_then(|text| used_memory(&text)).unwrap_or(0.0)
}

/// All memory that the machine has.
pub fn memory_total_bytes() -> Option<u64> {
    Some(1024 * kilobytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")?)
}

/// The memory that this process has in use.
pub fn process_memory_bytes() -> Option<u64> {
    Some(1024 * kilobytes(&fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")?)
}

/// Time that the processors have spent since the start of the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Ticks {
    total: u64,
    idle: u64,
}

fn look() -> Ticks {
    fs::read_to_string("/proc/stat").ok().and_then(|text| ticks(&text)).unwrap_or_default()
}

/// The first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal, and then
/// guest times, which are counted in user already.
fn ticks(text: &str) -> Option<Ticks> {
    let fields = text.lines().next()?.strip_prefix("cpu ")?;
    let spent: Vec<u64> = fields.split_whitespace().take(8).map_while(|field| field.parse().ok()).collect();
    let idle = spent.get(3)? + spent.get(4)?;
    Some(Ticks { total: spent.iter().sum(), idle })
}

fn used_memory(text: &str) -> Option<f32> {
    let (total, available) = (kilobytes(text, "MemTotal:")?, kilobytes(text, "MemAvailable:")?);
    Some(percent(total.saturating_sub(available), total))
}

/// The line `name   12345 kB` of a file of such lines.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn percent(part: u64, whole: u64) -> f32 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64 * 100.0) as f32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_is_what_was_not_idle_since_the_last_look() {
        let first = ticks("cpu  100 0 100 700 100 0 0 0 9 9\ncpu0 1 2 3 4\n").unwrap();
        assert_eq!(first, Ticks { total: 1000, idle: 800 });
        let mut meter = CpuMeter { last: first, load_percent: None };
        meter.advance(Ticks { total: 1200, idle: 950 });
        assert_eq!(meter.load_percent, Some(25.0));
    }

    #[test]
    fn a_look_right_after_the_last_repeats_its_answer() {
        let mut meter = CpuMeter { last: Ticks { total: 1000, idle: 800 }, load_percent: Some(25.0) };
        meter.advance(Ticks { total: 1010, idle: 800 });
        assert_eq!(meter.load_percent, Some(25.0));
        assert_eq!(meter.last.total, 1000);
    }

    #[test]
    fn memory_that_can_be_had_is_not_in_use() {
        let text = "MemTotal:  1000 kB\nMemFree:  10 kB\nMemAvailable:  250 kB\n";
        assert_eq!(used_memory(text).unwrap().to_bits(), 75f32.to_bits());
        assert_eq!(used_memory("MemTotal: 1 kB\n"), None);
    }

    #[test]
    fn another_systems_files_say_nothing() {
        assert_eq!(ticks(""), None);
        assert_eq!(ticks("cpu  1 2 3\n"), None);
    }
}
