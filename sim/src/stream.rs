//! What the bus beside several servers keeps: packets that ask for a job or report one. Each is handed to one
//! server, and to another when that one has neither said that it is done nor that it is still at it for a while.

use crate::breakage::Breakage;
use crate::server::Life;
use crate::situations::Situation;
use crate::world::{World, sleep_ms};
use reveille_bus::{Ack, Delivery, Message, MessageKey, Word};
use reveille_core::time::Millis;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const NAME: &str = "CORDUM_SYS";
/// How long the bus waits for a word the first time, the second time, and from then on.
const BACKOFF_MS: [i64; 3] = [30_000, 120_000, 600_000];
/// How often servers say that they are still at it.
const PROGRESS_MS: i64 = 10_000;
/// How long to wait for somebody to give it to.
const NOBODY_MS: i64 = 500;

#[derive(Default)]
pub struct Stream(Mutex<StreamState>);

#[derive(Default)]
struct StreamState {
    kept: BTreeMap<u64, StoredMessage>,
    seq_last: u64,
}

struct StoredMessage {
    message: Message,
    at: Millis,
    delivered: u64,
    /// The server that has it, until it says something or its word is lost.
    with: Option<Life>,
    had_by: Option<usize>,
}

impl Stream {
    fn state(&self) -> MutexGuard<'_, StreamState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_empty(&self) -> bool {
        self.state().kept.is_empty()
    }

    pub fn keep(&self, world: &Arc<World>, message: Message) {
        let message = Message { reply: None, ..message };
        let seq = {
            let mut state = self.state();
            state.seq_last += 1;
            let seq = state.seq_last;
            let kept = StoredMessage { message, at: world.now(), delivered: 0, with: None, had_by: None };
            state.kept.insert(seq, kept);
            seq
        };
        self.reserve(world, seq);
    }

    /// Gives it to a server that can be reached; if there is none, later.
    fn reserve(&self, world: &Arc<World>, seq: u64) {
        let Some(subject) = self.state().kept.get(&seq).map(|kept| kept.message.subject.clone()) else {
            return;
        };
        let mut ears = world.network.ears_on(world, &subject);
        ears.retain(|ear| world.server(ear.server).engine().is_some());
        if ears.is_empty() {
            return offer_in(world, seq, NOBODY_MS);
        }
        let ear = world.rng.pick(&ears).clone();
        let Some((_, life)) = world.server(ear.server).engine() else { return };
        let Some(delivery) = self.delivery(world, seq, &life) else { return };
        let number = delivery.from.as_ref().map_or(0, |key| key.delivered);
        world.trace.say(format_args!("{} is handed kept packet {seq} of {subject}", life.name()));
        world.network.hand_over(world, &ear, delivery);
        if world.breakage == Some(Breakage::LoseKept) {
            drop(self.state().kept.remove(&seq));
        } else {
            tokio::spawn(wait_for_word(world.clone(), seq, number));
        }
    }

    fn delivery(&self, world: &Arc<World>, seq: u64, life: &Life) -> Option<Delivery> {
        let mut state = self.state();
        let kept = state.kept.get_mut(&seq)?;
        kept.delivered += 1;
        kept.with = Some(life.clone());
        if kept.had_by.replace(life.server).is_some_and(|before| before != life.server) {
            world.situations.record(Situation::HandedToAnother);
        }
        let from = MessageKey {
            stream: NAME.into(),
            durable: kept.message.subject.as_str().into(),
            seq,
            kept_at: kept.at.0,
            delivered: kept.delivered,
        };
        let (world, life, number) = (world.clone(), life.clone(), kept.delivered);
        let ack = Ack::new(move |said| world.network.stream.told(&world, seq, number, &life, said));
        Some(Delivery { message: kept.message.clone(), ack, from: Some(from) })
    }

    /// A server says what became of it. The dead say nothing, and from one that is cut off nothing is heard.
    fn told(&self, world: &Arc<World>, seq: u64, number: u64, life: &Life, said: Word) {
        if life.is_over() {
            return;
        }
        let is_heard = world.server(life.server).hears();
        world.trace.say(format_args!("{} says of kept packet {seq}: {said:?}", life.name()));
        let mut state = self.state();
        let Some(kept) = state.kept.get_mut(&seq).filter(|kept| kept.delivered == number) else {
            // Somebody else has it; that it is done counts all the same.
            if said != Word::Done || !is_heard {
                return;
            }
            return drop(state.kept.remove(&seq));
        };
        kept.with = None;
        if !is_heard {
            return world.situations.record(Situation::AckLost);
        }
        match said {
            Word::Done | Word::End => drop(state.kept.remove(&seq)),
            Word::Later(delay) => {
                drop(state);
                offer_in(world, seq, delay.as_millis() as i64);
            }
        }
    }

    /// Whether the server that got it that time still says that it is at it; nothing if that is settled.
    fn is_at_it(&self, world: &World, seq: u64, number: u64) -> Option<bool> {
        let state = self.state();
        let kept = state.kept.get(&seq).filter(|kept| kept.delivered == number)?;
        let with = kept.with.as_ref();
        Some(with.is_some_and(|life| !life.is_over() && world.server(life.server).hears()))
    }
}

/// Takes it back when nothing was heard of it for too long.
async fn wait_for_word(world: Arc<World>, seq: u64, number: u64) {
    let patience_ms = BACKOFF_MS[(number as usize - 1).min(BACKOFF_MS.len() - 1)];
    let mut silent_ms = 0;
    while silent_ms < patience_ms {
        sleep_ms(PROGRESS_MS).await;
        match world.network.stream.is_at_it(&world, seq, number) {
            None => return,
            Some(true) => silent_ms = 0,
            Some(false) => silent_ms += PROGRESS_MS,
        }
    }
    world.trace.say(format_args!("nobody says what became of kept packet {seq}"));
    world.network.stream.reserve(&world, seq);
}

fn offer_in(world: &Arc<World>, seq: u64, ms: i64) {
    let world = world.clone();
    tokio::spawn(async move {
        sleep_ms(ms).await;
        world.network.stream.reserve(&world, seq);
    });
}
