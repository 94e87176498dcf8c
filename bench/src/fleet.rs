//! What a large fleet costs: memory, a beat, a placement, an expiry.

use crate::report::BenchReport;
use reveille_core::fleet::{Beat, Load};
use reveille_core::id::{JobId, PoolId, TenantId, Topic, WorkerId};
use reveille_core::placement::Placement;
use reveille_core::request::Request;
use reveille_core::time::Millis;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const START: Millis = Millis(1_000_000_000);
const REGIONS: usize = 8;
const CLASSES: usize = 4;

pub fn measure(report: &mut BenchReport) {
    for workers in [100_000, 1_000_000] {
        measure_one(report, workers);
    }
}

fn measure_one(report: &mut BenchReport, workers: usize) {
    let before = resident_bytes();
    let ids: Vec<WorkerId> =
        (0..workers).map(|number| WorkerId::known(format!("worker-{number:08}"))).collect();
    let ids_bytes = resident_bytes() - before;
    let tenant = TenantId::known("default");
    let mut placement = Placement::default();
    placement.expire(START);
    // They come one after the other over one beat interval, as in life.
    for (number, id) in ids.iter().enumerate() {
        let now = START + (number * 5_000 / workers) as i64;
        placement.beat(id, &tenant, &beat(number, 0), now);
        placement.announce_topics(id, &tenant, [Topic::known("job.echo")], now);
    }
    let bytes = (resident_bytes() - before - ids_bytes) / workers as f64;
    // Names are shared between the caller's list and the registry, so they are added here.
    let bytes = bytes + ids_bytes / workers as f64;
    report.add(format!("{workers} workers: registry"), bytes, "B a worker", "< 400");

    let rounds = workers.max(1_000_000);
    let beats: Vec<Beat> = (0..1_000).map(|number| beat(number, number % 3)).collect();
    // Every worker in turn, but far from its neighbours in memory.
    let spread = |round: usize| (round * 7919) % workers;
    let took = timed(|| {
        for round in 0..rounds {
            let at = spread(round);
            let told = &beats[at % (REGIONS * CLASSES)];
            black_box(placement.beat(&ids[at], &tenant, told, START + 5_000 + (at * 5_000 / workers) as i64));
        }
    });
    report.add(format!("{workers} workers: a beat"), took / rounds as f64, "ns", "");

    let requests: Vec<Arc<Request>> = (0..1_000).map(job).collect();
    for request in &requests {
        if placement.reserve(request, START).is_ok() {
            placement.remove(&request.id);
        }
    }
    let (rounds, mut placing, mut releasing) = (200, 0.0, 0.0);
    for _ in 0..rounds {
        placing +=
            timed(|| requests.iter().for_each(|request| drop(black_box(placement.reserve(request, START)))));
        releasing += timed(|| requests.iter().for_each(|request| placement.remove(&request.id)));
    }
    let jobs = f64::from(rounds) * requests.len() as f64;
    report.add(format!("{workers} workers: a placement with two labels"), placing / jobs, "ns", "< 1,000");
    report.add(format!("{workers} workers: its release"), releasing / jobs, "ns", "");

    let (mean, worst) = expiry(&mut placement, START + 10_000, START + 34_900);
    assert_eq!(placement.fleet().len(), workers, "everybody beats, so nobody dies");
    report.add(format!("{workers} workers, all alive: an expiry tick, mean"), mean, "µs", "");
    report.add(format!("{workers} workers, all alive: an expiry tick, worst"), worst, "µs", "");
    let (mean, worst) = expiry(&mut placement, START + 34_900, START + 65_000);
    assert!(placement.fleet().len() < workers, "silence kills");
    report.add(format!("{workers} workers, all silent: an expiry tick, mean"), mean, "µs", "");
    report.add(format!("{workers} workers, all silent: an expiry tick, worst"), worst, "µs", "");
}

/// Microseconds that the ticks between two moments took, mean and worst.
fn expiry(placement: &mut Placement, from: Millis, to: Millis) -> (f64, f64) {
    let (mut total, mut worst, mut ticks) = (0.0, 0.0f64, 0);
    let mut now = from;
    while now < to {
        now = now + 50;
        let took = timed(|| drop(black_box(placement.expire(now)))) / 1e3;
        (total, worst, ticks) = (total + took, worst.max(took), ticks + 1);
    }
    (total / f64::from(ticks), worst)
}

fn beat(number: usize, active: usize) -> Beat {
    let labels = [("region", number % REGIONS), ("class", number / REGIONS % CLASSES)];
    Beat {
        pool: PoolId::parse("fleet").ok(),
        labels: labels.iter().map(|(key, value)| ((*key).to_owned(), format!("{key}-{value}"))).collect(),
        load: Load {
            active_jobs: active as u32,
            max_parallel_jobs: 10,
            cpu: (number % 80) as f32,
            ..Load::default()
        },
        ..Beat::default()
    }
}

fn job(number: usize) -> Arc<Request> {
    let mut request = Request::plain("j", "job.echo");
    request.id = JobId::known(format!("job-{number}"));
    request.labels.insert("placement.region".into(), format!("region-{}", number % REGIONS));
    request.labels.insert("node.class".into(), format!("class-{}", number / REGIONS % CLASSES));
    Arc::new(request)
}

/// Nanoseconds.
fn timed(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_nanos() as f64
}

/// What the process really holds, after the allocator has had time to give back what it does not.
fn resident_bytes() -> f64 {
    std::thread::park_timeout(std::time::Duration::from_millis(300));
    drop(black_box(vec![0u8; 1 << 20]));
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<f64>().ok()).unwrap_or_default() * 4096.0
}
