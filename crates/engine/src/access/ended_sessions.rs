//! Sessions of browsers that somebody has ended: what makes a cookie worthless that is still whole.
//!
//! Each is remembered until its cookie would be over by itself, in the roster, so that every server knows it within two
//! seconds and a restart forgets none. There is room for so many; where there is no more, all sessions of the key are
//! ended instead of one. That needs one place, and errs on the side of signing in again.

use super::Access;
use super::session_tokens::{BrowserSession, SESSION_MS};
use crate::roster::{RosterBatch, RosterCopy};
use reveille_core::id::{KeyId, SessionId};
use reveille_core::time::Millis;
use reveille_roster::{Change, EndedSessions, Roster, RosterError};
use rustc_hash::FxHashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Sessions of one key that can be ended one by one within the time that a session lasts.
pub const ENDED_SESSIONS_PER_KEY_MAX: usize = 64;
/// And of all keys.
pub const ENDED_SESSIONS_MAX: usize = 100_000;

/// This server's copy.
pub struct EndedSessionIndex {
    roster: Arc<dyn Roster>,
    of_key: RwLock<FxHashMap<KeyId, EndedOfKey>>,
}

#[derive(Default)]
struct EndedOfKey {
    /// Sessions are over that would have ended no later.
    all_until: Option<Millis>,
    single: FxHashMap<SessionId, Millis>,
}

impl EndedSessionIndex {
    pub async fn load(roster: Arc<dyn Roster>) -> Result<Self, RosterError> {
        let index = Self { roster, of_key: RwLock::default() };
        index.reload().await?;
        Ok(index)
    }

    fn contains(&self, session: &BrowserSession) -> bool {
        let of_key = self.of_key.read().unwrap_or_else(PoisonError::into_inner);
        of_key.get(&session.key).is_some_and(|ended| {
            ended.all_until.is_some_and(|until| session.end <= until)
                || ended.single.contains_key(&session.id)
        })
    }

    /// Sessions of this key are over that end no later than this.
    fn all_until(&self, key: &KeyId) -> Option<Millis> {
        self.of_key.read().unwrap_or_else(PoisonError::into_inner).get(key)?.all_until
    }

    /// What to write down so that this session is over.
    fn end_of(&self, session: &BrowserSession, now: Millis) -> EndedSessions {
        self.forget(now);
        let of_key = self.of_key.read().unwrap_or_else(PoisonError::into_inner);
        let of_this = of_key.get(&session.key).map_or(0, |ended| ended.single.len());
        let of_all: usize = of_key.values().map(|ended| ended.single.len()).sum();
        if of_this >= ENDED_SESSIONS_PER_KEY_MAX || of_all >= ENDED_SESSIONS_MAX {
            return end_of_all(&session.key, now);
        }
        EndedSessions { key: session.key.clone(), session: Some(session.id.clone()), until: session.end }
    }

    fn insert(&self, ended: EndedSessions) {
        let mut of_key = self.of_key.write().unwrap_or_else(PoisonError::into_inner);
        let of_key = of_key.entry(ended.key).or_default();
        if let Some(session) = ended.session {
            of_key.single.insert(session, ended.until);
        } else {
            of_key.all_until = of_key.all_until.max(Some(ended.until));
            of_key.single.retain(|_, until| *until > ended.until);
        }
    }

    fn forget(&self, over_by: Millis) {
        let mut of_key = self.of_key.write().unwrap_or_else(PoisonError::into_inner);
        of_key.retain(|_, ended| {
            ended.all_until = ended.all_until.filter(|until| *until > over_by);
            ended.single.retain(|_, until| *until > over_by);
            ended.all_until.is_some() || !ended.single.is_empty()
        });
    }
}

/// A session that begins now ends then, so no cookie of the key is good that was made before.
fn end_of_all(key: &KeyId, now: Millis) -> EndedSessions {
    EndedSessions { key: key.clone(), session: None, until: now + SESSION_MS }
}

#[async_trait::async_trait]
impl RosterCopy for EndedSessionIndex {
    /// What is known here stays: a session that has ended does not go on.
    async fn reload(&self) -> Result<bool, RosterError> {
        for ended in self.roster.ended_sessions().await? {
            self.insert(ended);
        }
        Ok(true)
    }
}

impl Access {
    /// Whether somebody has ended this session, or its time is over.
    pub fn session_is_over(&self, session: &BrowserSession) -> bool {
        self.runtime.now() >= session.end || self.ended_sessions.contains(session)
    }

    /// When a session ends that this key begins now.
    pub(super) fn session_end(&self, key: &KeyId) -> Millis {
        let end = self.runtime.now() + SESSION_MS;
        self.ended_sessions.all_until(key).map_or(end, |until| end.max(until + 1))
    }

    /// From now on this session opens nothing, here at once and at every other server within two seconds.
    pub async fn end_session(&self, session: &BrowserSession) -> Result<(), RosterError> {
        self.write_ended(self.ended_sessions.end_of(session, self.runtime.now())).await
    }

    /// The same for every session that this key has begun.
    pub async fn end_all_sessions(&self, key: &KeyId) -> Result<(), RosterError> {
        self.write_ended(end_of_all(key, self.runtime.now())).await
    }

    async fn write_ended(&self, ended: EndedSessions) -> Result<(), RosterError> {
        // Here it is over even if the roster does not answer.
        self.ended_sessions.insert(ended.clone());
        let over = Change::ForgetSessions { over_by: self.runtime.now() };
        let changes = vec![over, Change::EndSessions(ended)];
        let (writer, batch) = (self.writer.clone(), RosterBatch { changes, events: Vec::new() });
        self.runtime.run_detached(async move { writer.write(batch).await }).await
    }

    /// The copy that is read again when another server has ended sessions.
    pub fn ended_sessions(&self) -> Arc<dyn RosterCopy> {
        self.ended_sessions.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_roster::MemoryRoster;

    fn session(id: &str, end: i64) -> BrowserSession {
        BrowserSession { key: KeyId::known("k"), id: SessionId::known(id), end: Millis(end) }
    }

    async fn index() -> EndedSessionIndex {
        EndedSessionIndex::load(Arc::new(MemoryRoster::new())).await.unwrap()
    }

    #[tokio::test]
    async fn whoever_signs_out_without_end_ends_all_sessions_of_the_key() {
        let index = index().await;
        let now = Millis(1_000);
        for number in 0..ENDED_SESSIONS_PER_KEY_MAX {
            let ended = index.end_of(&session(&number.to_string(), 5_000), now);
            assert!(ended.session.is_some());
            index.insert(ended);
        }
        let (another, foreign) = (session("another", 5_000), session("0", 5_000));
        assert!(!index.contains(&another));
        let foreign = BrowserSession { key: KeyId::known("other"), ..foreign };
        let ended = index.end_of(&another, now);
        assert_eq!((ended.session.clone(), ended.until), (None, now + SESSION_MS));
        index.insert(ended);
        assert!(index.contains(&another) && index.contains(&session("never-seen", 5_000)));
        assert!(!index.contains(&foreign), "another key's sessions go on");
        let of_key = index.of_key.read().unwrap();
        assert!(of_key[&KeyId::known("k")].single.is_empty(), "one place stands for all of them");
    }

    #[tokio::test]
    async fn what_is_over_by_itself_takes_no_room() {
        let index = index().await;
        index.insert(index.end_of(&session("a", 50), Millis(0)));
        index.insert(end_of_all(&KeyId::known("k"), Millis(0)));
        index.forget(Millis(50));
        assert!(!index.of_key.read().unwrap().is_empty());
        index.forget(Millis(SESSION_MS));
        assert!(index.of_key.read().unwrap().is_empty());
    }
}
