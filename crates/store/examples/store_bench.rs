//! How fast [`SqliteStore`] carries jobs through their lives: insert with a context, a change to
//! RUNNING, a result, a change to SUCCEEDED; by many tasks at once, each change durable before the next.
//!
//! `cargo run --release -p reveille-store --example store_bench -- [seconds] [tasks] [directory]`

use bytes::Bytes;
use reveille_core::id::WorkerId;
use reveille_core::job::{Attempt, Ending, Job, Phase, State};
use reveille_core::life;
use reveille_core::policy::Policy;
use reveille_core::policy::RecordedVerdict;
use reveille_core::request::Request;
use reveille_core::time::Millis;
use reveille_store::{BlobKey, Blobs, ClockFn, Commit, JobStore, PutMode, SqliteStore, Step};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

const CONTEXT_LEN: usize = 200;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let tasks = arguments.next().map_or(Ok(64), |text| text.parse())?;
    let directory = tempfile::tempdir_in(arguments.next().map_or_else(std::env::temp_dir, PathBuf::from))?;
    let start = Instant::now();
    let clock: ClockFn = Arc::new(move || Millis(1_000_000 + start.elapsed().as_millis() as i64));
    let store = SqliteStore::open(&directory.path().join("bench.db"), clock.clone())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;

    let cpu_before = cpu_ticks()?;
    let deadline = start + Duration::from_secs(seconds);
    let mut latencies = runtime.block_on(async {
        let mut lives = tokio::task::JoinSet::new();
        for task in 0..tasks {
            let (store, clock) = (store.clone(), clock.clone());
            lives.spawn(async move {
                let mut latencies = Vec::new();
                for number in 0.. {
                    if Instant::now() > deadline {
                        break;
                    }
                    // Ids in order of time, as the real ones are.
                    let id = format!("019{:013x}-7000-{task:04x}-{number:08x}", start.elapsed().as_micros());
                    live(&store, &id, &clock, &mut latencies).await;
                }
                latencies
            });
        }
        lives.join_all().await.concat()
    });
    let elapsed = start.elapsed().as_secs_f64();
    let cpu_us = (cpu_ticks()? - cpu_before) as f64 * 10_000.0;

    latencies.sort_unstable();
    let jobs = latencies.len() as f64 / 4.0;
    let at = |share: f64| latencies[(latencies.len() as f64 * share) as usize].as_secs_f64() * 1e3;
    let stats = store.stats();
    println!("{:.0} jobs/s ({tasks} tasks, {elapsed:.1} s, {jobs:.0} jobs)", jobs / elapsed);
    println!("change: p50 {:.2} ms, p99 {:.2} ms, worst {:.1} ms", at(0.5), at(0.99), at(0.999_999));
    println!(
        "{:.1} changes per commit, {:.0} commits/s",
        stats.operations as f64 / stats.commits as f64,
        stats.commits as f64 / elapsed
    );
    println!("{:.1} µs of CPU per job", cpu_us / jobs);
    let closing = Instant::now();
    drop(store);
    let len = std::fs::metadata(directory.path().join("bench.db"))?.len();
    println!("{:.0} bytes per job on the disk; closed in {:?}", len as f64 / jobs, closing.elapsed());
    Ok(())
}

async fn live(store: &SqliteStore, id: &str, clock: &ClockFn, latencies: &mut Vec<Duration>) {
    let now = clock();
    let expires_at = now + 86_400_000;
    let job = life::submit(Request::plain(id, "job.echo"), now);
    let verdict = Policy::builtin().evaluate(&job.request);
    let judged = life::judge(&job, RecordedVerdict { verdict, checked_at: now }, now).unwrap_or(job);
    let mut step = Step::insert(judged);
    let job = Arc::clone(&step.job);
    step.blobs.push((
        store.colocated_key(BlobKey::context_of(job.id())),
        Bytes::from(vec![b'x'; CONTEXT_LEN]),
        expires_at,
    ));
    timed(latencies, store.commit(step)).await;

    let worker = Some(WorkerId::known("worker-1"));
    let attempt =
        Attempt { number: 1, worker: worker.clone(), pool: None, dispatched_at: now, progress: None };
    let running = Job { phase: Phase::Running(attempt), updated_at: clock(), ..(*job).clone() };
    let step = Step::change(&job, Job { attempts: vec![worker.clone()], ..running });
    let job = Arc::clone(&step.job);
    timed(latencies, store.commit(step)).await;

    let result = BlobKey::result_of(job.id());
    let put =
        store.put_blob(result.clone(), Bytes::from(vec![b'y'; CONTEXT_LEN]), expires_at, PutMode::Always);
    let before = Instant::now();
    assert!(put.await.is_ok_and(|is_stored| is_stored));
    latencies.push(before.elapsed());

    let ending = Ending {
        state: State::Succeeded,
        from: State::Running,
        reason: None,
        words: String::new(),
        error_code: String::new(),
        result_ptr: result.pointer(),
        worker,
        execution_ms: 1,
        is_fatal: false,
        trace: None,
        cancelled_by: None,
    };
    let over = Job { phase: Phase::Ended(ending), updated_at: clock(), ..(*job).clone() };
    timed(latencies, store.commit(Step::change(&job, over))).await;
}

async fn timed<E: std::fmt::Debug>(
    latencies: &mut Vec<Duration>,
    commit: impl Future<Output = Result<Commit, E>>,
) {
    let before = Instant::now();
    let outcome = commit.await;
    assert!(matches!(outcome, Ok(Commit::Done)), "{outcome:?}");
    latencies.push(before.elapsed());
}

/// Processor time of this process so far, in hundredths of a second.
fn cpu_ticks() -> Result<u64, Box<dyn std::error::Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    Ok(fields[11].parse::<u64>()? + fields[12].parse::<u64>()?)
}
