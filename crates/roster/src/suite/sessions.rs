//! Sessions that were ended before their time.

use super::{NOW, write};
use crate::{Change, EndedSessions, Roster};
use reveille_core::id::{KeyId, SessionId};
use reveille_core::time::Millis;

pub async fn run(roster: &dyn Roster) {
    an_ended_session_is_kept_with_its_later_end(roster).await;
    the_end_of_all_takes_the_place_of_single_ones(roster).await;
    a_session_that_is_over_by_itself_is_forgotten(roster).await;
}

pub async fn an_ended_session_is_kept_with_its_later_end(roster: &dyn Roster) {
    for until in [NOW + 5, NOW + 9, NOW + 1] {
        write(roster, ended("suite-ended", "b", until)).await;
    }
    write(roster, ended("suite-ended", "a", NOW + 2)).await;
    assert_eq!(ended_of(roster, "suite-ended").await, [("a", NOW + 2), ("b", NOW + 9)].map(named));
}

pub async fn the_end_of_all_takes_the_place_of_single_ones(roster: &dyn Roster) {
    let batch = vec![
        ended("suite-all", "early", NOW + 1),
        ended("suite-all", "late", NOW + 9),
        ended("suite-all-2", "early", NOW + 1),
        ended("suite-all", "", NOW + 5),
        ended("suite-all", "", NOW + 3),
    ];
    roster.write(batch).await.unwrap();
    assert_eq!(ended_of(roster, "suite-all").await, [("", NOW + 5), ("late", NOW + 9)].map(named));
    assert_eq!(ended_of(roster, "suite-all-2").await, [named(("early", NOW + 1))]);
}

pub async fn a_session_that_is_over_by_itself_is_forgotten(roster: &dyn Roster) {
    let batch = vec![ended("suite-over", "a", NOW + 5), ended("suite-over", "b", NOW + 6)];
    roster.write(batch).await.unwrap();
    write(roster, Change::ForgetSessions { over_by: NOW + 5 }).await;
    assert_eq!(ended_of(roster, "suite-over").await, [named(("b", NOW + 6))]);
}

fn ended(key: &str, session: &str, until: Millis) -> Change {
    let session = (!session.is_empty()).then(|| SessionId::known(session));
    Change::EndSessions(EndedSessions { key: KeyId::known(key), session, until })
}

fn named((session, until): (&str, Millis)) -> (String, Millis) {
    (session.to_owned(), until)
}

/// Each with its end; all of them have an empty name.
async fn ended_of(roster: &dyn Roster, key: &str) -> Vec<(String, Millis)> {
    let mut ended = roster.ended_sessions().await.unwrap();
    ended.retain(|ended| ended.key.as_str() == key);
    let name = |session: Option<SessionId>| session.map_or_else(String::new, |id| id.to_string());
    ended.into_iter().map(|ended| (name(ended.session), ended.until)).collect()
}
