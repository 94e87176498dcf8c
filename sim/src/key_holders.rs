//! Operators who make keys and revoke them, and holders who go on using theirs.
//!
//! A key that was acknowledged opens every server until it ends, whoever dies meanwhile. One that was revoked or has
//! expired opens nothing: at once where that was said, within two seconds elsewhere. What it had opened ends with it, and a
//! browser that has signed out is signed out everywhere.

use crate::invariants::InvariantResult;
use crate::server::Life;
use crate::situations::Situation;
use crate::world::{World, sleep_ms};
use reveille_core::id::{KeyId, TenantId};
use reveille_core::time::Millis;
use reveille_engine::{BrowserSession, Caller, Engine, NewKey, SESSION_TOKEN_LEN};
use reveille_roster::Scope;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const KEYS_MAX: usize = 6;
const LOOK_MS: i64 = 710;
/// How long it may take until another server knows that a key is there, or is gone.
const FOLLOWED_MS: i64 = 2_000;

/// What operators know of the keys they have made.
#[derive(Default)]
pub struct KeyLog(Mutex<KeyNotes>);

#[derive(Default)]
struct KeyNotes {
    keys: BTreeMap<KeyId, KeyStory>,
    /// When each server's present life was first seen.
    seen: BTreeMap<usize, (u64, Millis)>,
}

#[derive(Clone)]
struct KeyStory {
    secret: String,
    /// What a connection that the key has opened holds on to.
    opened: Arc<Caller>,
    session: BrowserSession,
    token: [u8; SESSION_TOKEN_LEN],
    made: Acknowledged,
    /// By the clock of whoever is asked.
    expires_at: Option<Millis>,
    revocation: Ending,
    sign_out: Ending,
}

/// Whether somebody has ended a key or a session.
#[derive(Clone, Copy)]
enum Ending {
    None,
    /// Somebody has asked for it, and nobody knows what came of that.
    Asked,
    Certain(Acknowledged),
}

/// Since when something is certain, and in which life of which server it was said.
#[derive(Clone, Copy)]
struct Acknowledged {
    at: Millis,
    server: usize,
    life: u64,
}

impl KeyLog {
    fn notes(&self) -> MutexGuard<'_, KeyNotes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes a few keys, signs out some of their sessions and revokes some of them, while things go wrong.
pub async fn issue_and_revoke(world: Arc<World>) {
    while world.faults.are_on() {
        sleep_ms(world.rng.between(1_000, 20_000)).await;
        let candidates: Vec<KeyId> = {
            let notes = world.key_log.notes();
            let is_there = |story: &KeyStory| !matches!(story.revocation, Ending::Certain(_));
            notes.keys.iter().filter(|(_, story)| is_there(story)).map(|(id, _)| id.clone()).collect()
        };
        let has_room = world.key_log.notes().keys.len() < KEYS_MAX;
        if candidates.is_empty() || has_room && world.rng.percent(60) {
            issue(&world).await;
        } else if world.rng.percent(50) {
            sign_out(&world, world.rng.pick(&candidates)).await;
        } else {
            revoke(&world, world.rng.pick(&candidates)).await;
        }
    }
}

async fn issue(world: &World) {
    if world.key_log.notes().keys.len() >= KEYS_MAX {
        return;
    }
    let Some((engine, life)) = world.engine() else { return };
    let expires_at = world.rng.percent(40).then(|| engine.now() + world.rng.skewed(500, 120_000));
    let new = NewKey {
        name: "holder".to_owned(),
        tenant: TenantId::known("holders"),
        scopes: vec![Scope::Read],
        worker: None,
        expires_at,
        created_by: "op".to_owned(),
        issued_by: None,
        project_ids: None,
    };
    let Some(Ok((key, secret))) = life.answer(engine.access().create_key(new)).await else { return };
    let access = engine.access();
    let Some((opened, (session, token))) = access.authenticate(&secret).zip(access.begin_session(&secret))
    else {
        let has_expired = expires_at.is_some_and(|end| engine.now() >= end);
        if !has_expired {
            world.fail(&format!("{} was made and opens nothing", key.id));
        }
        return;
    };
    world.trace.say(format_args!("op makes {}", key.id));
    let story = KeyStory {
        secret,
        opened,
        session,
        token,
        made: Acknowledged::by(&life, world.now()),
        expires_at,
        revocation: Ending::None,
        sign_out: Ending::None,
    };
    world.key_log.notes().keys.insert(key.id, story);
}

async fn revoke(world: &World, id: &KeyId) {
    let Some((engine, life)) = world.engine() else { return };
    let note = |revocation| {
        if let Some(story) = world.key_log.notes().keys.get_mut(id) {
            story.revocation = revocation;
        }
    };
    note(Ending::Asked);
    let done = life.answer(engine.access().revoke_key(id, "op")).await;
    world.trace.say(format_args!("op revokes {id}: {done:?}"));
    if let Some(Ok(true)) = done {
        note(Ending::Certain(Acknowledged::by(&life, world.now())));
    }
}

async fn sign_out(world: &World, id: &KeyId) {
    let Some((engine, life)) = world.engine() else { return };
    let session = world.key_log.notes().keys.get(id).map(|story| story.session.clone());
    let Some(session) = session else { return };
    let note = |ending| {
        if let Some(story) = world.key_log.notes().keys.get_mut(id) {
            story.sign_out = ending;
        }
    };
    note(Ending::Asked);
    let done = life.answer(engine.access().end_session(&session)).await;
    world.trace.say(format_args!("a browser of {id} signs out: {done:?}"));
    if let Some(Ok(())) = done {
        note(Ending::Certain(Acknowledged::by(&life, world.now())));
    }
}

/// Tries every key at every server, again and again.
pub async fn try_keys(world: Arc<World>) {
    loop {
        sleep_ms(LOOK_MS).await;
        for server in world.servers() {
            let Some((engine, life)) = server.engine().filter(|_| !server.is_stopped()) else { continue };
            if let Err(words) = try_at(&world, &engine, &life) {
                world.fail(&format!("{}: {words}", life.name()));
            }
        }
    }
}

fn try_at(world: &World, engine: &Engine, life: &Life) -> InvariantResult {
    let (keys, up_at) = {
        let mut notes = world.key_log.notes();
        let seen = notes.seen.entry(life.server).or_insert((life.number, world.now()));
        if seen.0 != life.number {
            *seen = (life.number, world.now());
        }
        let up_at = seen.1;
        (notes.keys.clone(), up_at)
    };
    // Since when this server must know of something.
    let known_since = |said: Acknowledged| {
        if said.is_of(life) {
            return said.at;
        }
        said.at.max(up_at).max(world.roster_calm.since()) + FOLLOWED_MS
    };
    for (id, story) in &keys {
        let opens = engine.access().authenticate(&story.secret).is_some();
        let keeps_open = engine.access().still_holds(&story.opened);
        if opens != keeps_open {
            return Err(format!("{id} opens: {opens}; what it has opened stays open: {keeps_open}"));
        }
        signed_in(world, engine, life, id, story, opens, known_since)?;
        let has_expired = story.expires_at.is_some_and(|end| engine.now() >= end);
        match story.revocation {
            _ if has_expired && opens => return Err(format!("{id} has expired and opens")),
            Ending::Certain(said) if world.now() > known_since(said) && opens => {
                return Err(format!("{id} was revoked at {:?} and opens", said.at));
            }
            Ending::None if !has_expired && !opens && world.now() > known_since(story.made) => {
                return Err(format!("{id} was made at {:?} and opens nothing", story.made.at));
            }
            _ if has_expired => world.situations.record(Situation::KeyExpired),
            Ending::Certain(said) if !said.is_of(life) && !opens => {
                world.situations.record(Situation::KeyRevokedElsewhere);
            }
            Ending::None if !story.made.is_of(life) && opens => {
                world.situations.record(Situation::KeyKnownElsewhere);
            }
            _ => {}
        }
    }
    Ok(())
}

/// A browser is signed in for as long as its key opens anything and it has not signed out.
fn signed_in(
    world: &World,
    engine: &Engine,
    life: &Life,
    id: &KeyId,
    story: &KeyStory,
    opens: bool,
    known_since: impl Fn(Acknowledged) -> Millis,
) -> InvariantResult {
    let is_signed_in = engine.access().resume_session(&story.session, &story.token).is_some();
    match story.sign_out {
        _ if is_signed_in && !opens => Err(format!("{id} opens nothing, and its session goes on")),
        Ending::Certain(said) if is_signed_in && world.now() > known_since(said) => {
            Err(format!("a browser of {id} signed out at {:?}, and its session goes on", said.at))
        }
        Ending::None if opens && !is_signed_in && engine.now() < story.session.end => {
            Err(format!("a browser of {id} is signed out, and nobody did that"))
        }
        Ending::Certain(said) if !said.is_of(life) && opens && !is_signed_in => {
            world.situations.record(Situation::SignedOutElsewhere);
            Ok(())
        }
        _ => Ok(()),
    }
}

impl Acknowledged {
    fn by(life: &Life, at: Millis) -> Self {
        Self { at, server: life.server, life: life.number }
    }

    fn is_of(self, life: &Life) -> bool {
        (self.server, self.life) == (life.server, life.number)
    }
}
