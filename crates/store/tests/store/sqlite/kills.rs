//! kill -9 at any moment: what was acknowledged is there, so is its entry in the audit trail, and the file
//! is sound.
//!
//! The test runs its own binary again as a child that commits as fast as it can and says what was
//! acknowledged, and kills it in the middle. What a power cut does to the disk is not tested here.

use super::Place;
use bytes::Bytes;
use reveille_core::id::JobId;
use reveille_core::policy::Decision;
use reveille_core::time::Millis;
use reveille_store::suite::audit::{judged, trail, whole};
use reveille_store::suite::{ManualClock, load, new_job, running};
use reveille_store::{BlobKey, Blobs, Commit, JobStore, SqliteStore, Step};
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

const CHILD_FILE: &str = "REVEILLE_STORE_CHILD_FILE";
const CHILD_TEST: &str = "sqlite::kills::the_child_that_is_killed";
/// The child is killed after at most so many acknowledgements.
const ACKNOWLEDGED_MAX: u64 = 1500;
const KILLS: usize = 3;

#[tokio::test]
async fn what_was_acknowledged_survives_kill_9() {
    let place = Place::new();
    let mut acknowledged = BTreeMap::new();
    for _ in 0..KILLS {
        run_and_kill_a_child(&place, &mut acknowledged);
        let store = place.open();
        for (id, revision) in &acknowledged {
            let id = JobId::known(id.as_str());
            let job = load(&store, &id).await.unwrap_or_else(|| panic!("{id} is lost"));
            assert!(job.revision >= *revision, "{id} was at {revision}, is at {}", job.revision);
            let result = store.blob(&BlobKey::result_of(&id)).await.unwrap();
            assert_eq!(result.is_some(), job.revision >= 2, "a result comes with its change, or not at all");
            let context = store.blob(&BlobKey::context_of(&id)).await.unwrap();
            assert_eq!(context.as_deref(), Some(id.as_str().as_bytes()));
        }
        every_job_is_recorded_once(&store).await;
        drop(store);
        let connection = Connection::open(&place.path).unwrap();
        let finding: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(finding, "ok");
    }
    assert!(!acknowledged.is_empty());
}

/// Also those that were committed and not acknowledged any more.
async fn every_job_is_recorded_once(store: &SqliteStore) {
    let (file, count) = (store.file(), "SELECT count(*) FROM jobs");
    let jobs = file.read(|connection| Ok(connection.query_row(count, [], |row| row.get::<_, u32>(0))?));
    let jobs = u64::from(jobs.await.unwrap());
    whole(store, "kill", jobs).await;
    let recorded = trail(store, "kill").await.into_iter().filter_map(|entry| entry.draft.job_id);
    assert_eq!(recorded.collect::<BTreeSet<_>>().len() as u64, jobs);
}

/// Adds what the child said to have committed: job by job, the revision.
fn run_and_kill_a_child(place: &Place, acknowledged: &mut BTreeMap<String, u64>) {
    let moment = 1 + RandomState::new().build_hasher().finish() % ACKNOWLEDGED_MAX;
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", CHILD_TEST, "--ignored", "--nocapture"])
        .env(CHILD_FILE, &place.path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut heard = 0;
    let mut line = String::new();
    while output.read_line(&mut line).unwrap() > 0 {
        if let Some((id, revision)) = line.strip_suffix('\n').and_then(acknowledgement) {
            let known = acknowledged.entry(id).or_default();
            *known = revision.max(*known);
            heard += 1;
            if heard == moment {
                child.kill().unwrap();
            }
        }
        line.clear();
    }
    let status = child.wait().unwrap();
    assert!(heard >= moment && !status.success(), "the child ended by itself: {status}");
}

/// Reads `done <job> <revision>`; the test harness says other things too.
fn acknowledgement(line: &str) -> Option<(String, u64)> {
    let (id, revision) = line.split_once("done ")?.1.split_once(' ')?;
    Some((id.to_owned(), revision.parse().ok()?))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "only of use to the test that kills it"]
async fn the_child_that_is_killed() {
    let Some(path) = std::env::var_os(CHILD_FILE) else { return };
    let clock = ManualClock::new(Millis(1_000_000));
    let store = SqliteStore::open(&PathBuf::from(path), clock.clock()).unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..16 {
        let (store, now) = (store.clone(), clock.now());
        let prefix = format!("{}-{task}", std::process::id());
        tasks.spawn(async move {
            for number in 0.. {
                let job = new_job("kill", &format!("{prefix}-{number}"), now);
                let mut step = Step::insert(judged(&job, Decision::Allow, now));
                let job = Arc::clone(&step.job);
                let context = Bytes::copy_from_slice(job.id().as_str().as_bytes());
                step.blobs.push((BlobKey::context_of(job.id()), context, now + 1_000_000));
                assert_eq!(store.commit(step).await.unwrap(), Commit::Done);
                println!("done {} 1", job.id());
                let mut step = Step::change(&job, running(&job, now));
                step.blobs.push((BlobKey::result_of(job.id()), Bytes::from("result"), now + 1_000_000));
                assert_eq!(store.commit(step).await.unwrap(), Commit::Done);
                println!("done {} 2", job.id());
            }
        });
    }
    tasks.join_all().await;
}
