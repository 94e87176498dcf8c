//! Everything between the servers and the rest: connections, and messages that get lost, come twice,
//! come late, or overtake one another.
//!
//! One server alone is the bus: its death breaks every connection. Several have a bus beside them that outlives
//! them, keeps what asks for a job or reports one (`stream.rs`), and does not say who listens on what.

use crate::breakage::Breakage;
use crate::faults::Fault;
use crate::links::Dependency;
use crate::stream::Stream;
use crate::world::{World, sleep_ms};
use reveille_bus::{Delivery, DeliveryReport, HeardBy, Listener, Message, MessageOrigin, MessageSender};
use reveille_core::fleet::ServedTenants;
use reveille_core::id::TenantId;
use reveille_wire::subject;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, mpsc, oneshot};

/// Messages that wait in one subscription of a server.
const INBOX_LEN_MAX: usize = 8_192;

#[derive(Default)]
pub struct Network {
    pub stream: Stream,
    state: Mutex<NetworkState>,
    changed: Notify,
}

#[derive(Default)]
struct NetworkState {
    subscriptions: Vec<ServerSubscription>,
    /// What came for a stopped server; it reads it when it goes on.
    held: BTreeMap<usize, Vec<(mpsc::Sender<Delivery>, Delivery)>>,
    connections: BTreeMap<u64, SimConnection>,
    changed: BTreeMap<u64, Listener>,
    replies: BTreeMap<String, oneshot::Sender<Message>>,
    /// Whose turn it is in a topic's queue group: the last connection that had one.
    turns: BTreeMap<String, u64>,
    connection_last: u64,
    sent_last: u64,
    /// The latest message that arrived, by the order in which they were sent.
    arrived_last: u64,
}

/// One subscription of a server.
#[derive(Clone)]
pub struct ServerSubscription {
    pub server: usize,
    pub subject: String,
    /// Only one of its group gets a message.
    shares: bool,
    inbox: mpsc::Sender<Delivery>,
}

struct SimConnection {
    worker: usize,
    name: Option<String>,
    subjects: BTreeSet<String>,
}

impl Network {
    fn state(&self) -> MutexGuard<'_, NetworkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // The servers' side.

    pub fn subscribe(&self, server: usize, subject: &str, shares: bool) -> mpsc::Receiver<Delivery> {
        let (inbox, messages) = mpsc::channel(INBOX_LEN_MAX);
        self.state().subscriptions.push(ServerSubscription {
            server,
            subject: subject.to_owned(),
            shares,
            inbox,
        });
        messages
    }

    /// A server died and nobody listens there. If it was the bus, every connection breaks.
    pub fn server_is_gone(&self, world: &World, server: usize) {
        let mut state = self.state();
        state.subscriptions.retain(|ear| ear.server != server);
        state.held.remove(&server);
        if !world.plan.is_shared() {
            state.connections.clear();
            state.changed.clear();
            state.replies.clear();
        }
    }

    /// A server that was stopped reads what has come for it.
    pub fn go_on(&self, world: &Arc<World>, server: usize) {
        let held = self.state().held.remove(&server).unwrap_or_default();
        for (inbox, delivery) in held {
            put(world, server, &inbox, delivery);
        }
    }

    pub async fn listeners_changed(&self) -> Vec<Listener> {
        loop {
            let changed = std::mem::take(&mut self.state().changed);
            if !changed.is_empty() {
                return changed.into_values().collect();
            }
            self.changed.notified().await;
        }
    }

    /// Sends on its way what a server publishes, and says who will get it if nothing goes wrong.
    pub fn publish(&self, world: &Arc<World>, message: Message) -> DeliveryReport {
        let mut state = self.state();
        if let Some(reply) = state.replies.remove(&message.subject) {
            let _ = reply.send(message);
            return DeliveryReport::Somebody { by: None };
        }
        let own = state.ears(&message.subject);
        let recipients = state.recipients(&message.subject);
        let is_shared = world.plan.is_shared();
        let by = match recipients.as_slice() {
            [one] if !is_shared => {
                state.connections.get(one).map(|known| HeardBy { connection: *one, name: known.name.clone() })
            }
            _ => None,
        };
        drop(state);
        let heard = !own.is_empty() || !recipients.is_empty();
        let is_muted =
            world.breakage == Some(Breakage::MuteServers) && message.subject.starts_with("reveille.event.");
        if is_muted {
            world.trace.say(format_args!("muted: {}", message.subject));
        } else if is_shared && !own.is_empty() {
            self.carry(world, &message, |world, message| world.network.arrive_at_servers(world, message));
        } else {
            for ear in own {
                let _ = ear.inbox.try_send(message.clone().into());
            }
        }
        for connection in recipients {
            self.carry(world, &message, move |world, message| {
                world.network.arrive_at_worker(world, connection, message);
            });
        }
        if heard { DeliveryReport::Somebody { by } } else { DeliveryReport::Nobody }
    }

    // The workers' and clients' side.

    pub fn connect(&self, worker: usize, name: Option<String>, subjects: BTreeSet<String>) -> u64 {
        let mut state = self.state();
        state.connection_last += 1;
        let connection = state.connection_last;
        let listener = Listener {
            connection,
            name: name.clone(),
            subjects: subjects.iter().cloned().collect(),
            tenants: ServedTenants::Everyone,
        };
        state.changed.insert(connection, listener);
        state.connections.insert(connection, SimConnection { worker, name, subjects });
        drop(state);
        self.changed.notify_one();
        connection
    }

    pub fn disconnect(&self, connection: u64) {
        let mut state = self.state();
        let Some(gone) = state.connections.remove(&connection) else { return };
        state.changed.insert(connection, Listener::gone(connection, gone.name));
        drop(state);
        self.changed.notify_one();
    }

    pub fn is_connected(&self, connection: u64) -> bool {
        self.state().connections.contains_key(&connection)
    }

    /// A message to the server from a client of a tenant.
    pub fn send(&self, world: &Arc<World>, tenant: &str, subject: &str, payload: bytes::Bytes) {
        let sender = MessageSender { tenant: TenantId::known(tenant), key: None };
        self.send_from(world, MessageOrigin::Client(sender), subject, payload);
    }

    /// The same from a worker, which comes through an open door.
    pub fn send_as_worker(&self, world: &Arc<World>, subject: &str, payload: bytes::Bytes) {
        let sender = MessageSender { tenant: TenantId::known("default"), key: None };
        self.send_from(world, MessageOrigin::Worker(sender), subject, payload);
    }

    fn send_from(&self, world: &Arc<World>, origin: MessageOrigin, subject: &str, payload: bytes::Bytes) {
        let message = Message { origin, ..Message::new(subject, payload) };
        self.carry(world, &message, |world, message| world.network.arrive_at_servers(world, message));
    }

    /// The same, with an answer wanted. The answer itself comes safely, if it comes.
    pub fn request(
        &self,
        world: &Arc<World>,
        tenant: &TenantId,
        subject: &str,
        payload: bytes::Bytes,
    ) -> oneshot::Receiver<Message> {
        let (reply, answer) = oneshot::channel();
        let inbox = {
            let mut state = self.state();
            state.sent_last += 1;
            let inbox = format!("_INBOX.{}", state.sent_last);
            state.replies.insert(inbox.clone(), reply);
            inbox
        };
        let origin = MessageOrigin::Client(MessageSender { tenant: tenant.clone(), key: None });
        let message = Message { origin, reply: Some(inbox), ..Message::new(subject, payload) };
        self.carry(world, &message, |world, message| world.network.arrive_at_servers(world, message));
        answer
    }

    /// Takes a message to the other end, or does not, or does it twice.
    fn carry(
        &self,
        world: &Arc<World>,
        message: &Message,
        arrive: impl Fn(&Arc<World>, &Message) + Send + Clone + 'static,
    ) {
        if world.strikes(Fault::MessageLost) {
            return world.trace.say(format_args!("lost: {}", message.subject));
        }
        let copies = if world.strikes(Fault::MessageRepeated) { 2 } else { 1 };
        for _ in 0..copies {
            let late = world.strikes(Fault::MessageLate);
            let delay_ms = if late { world.rng.skewed(100, 45_000) } else { world.rng.skewed(0, 4) };
            let sent = {
                let mut state = self.state();
                state.sent_last += 1;
                state.sent_last
            };
            let (world, message, arrive) = (world.clone(), message.clone(), arrive.clone());
            tokio::spawn(async move {
                sleep_ms(delay_ms).await;
                world.network.overtaken(&world, sent);
                arrive(&world, &message);
            });
        }
    }

    fn overtaken(&self, world: &World, sent: u64) {
        let mut state = self.state();
        if sent < state.arrived_last {
            world.faults.count(Fault::MessageReordered);
        }
        state.arrived_last = state.arrived_last.max(sent);
    }

    fn arrive_at_worker(&self, world: &Arc<World>, connection: u64, message: &Message) {
        let worker = self.state().connections.get(&connection).map(|connection| connection.worker);
        if let Some(worker) = worker.map(|worker| world.misrouted(worker)) {
            world.worker(worker).receive(world, message);
        }
    }

    fn arrive_at_servers(&self, world: &Arc<World>, message: &Message) {
        if world.plan.is_shared()
            && [subject::JOB_SUBMIT, subject::JOB_RESULT].contains(&message.subject.as_str())
        {
            self.answer_for_the_bus(message);
            return self.stream.keep(world, message.clone());
        }
        let mut ears = self.state().ears(&message.subject);
        ears.retain(|ear| world.server(ear.server).links.leads(Dependency::Bus));
        if ears.len() > 1 && ears[0].shares {
            ears = vec![world.rng.pick(&ears).clone()];
        }
        for ear in ears {
            self.hand_over(world, &ear, message.clone().into());
        }
    }

    /// Whoever wants an answer to what the bus keeps is told that it is kept.
    fn answer_for_the_bus(&self, message: &Message) {
        let reply = message.reply.as_ref().and_then(|reply| self.state().replies.remove(reply));
        if let Some(reply) = reply {
            let _ = reply.send(Message::new("", "{\"ok\":true}"));
        }
    }

    /// Those to whom a kept message can be given now.
    pub fn ears_on(&self, world: &World, subject: &str) -> Vec<ServerSubscription> {
        let mut ears = self.state().ears(subject);
        ears.retain(|ear| world.server(ear.server).asks_for_kept(world.now()));
        ears
    }

    /// A stopped server finds it in its socket when it goes on.
    pub fn hand_over(&self, world: &Arc<World>, ear: &ServerSubscription, delivery: Delivery) {
        if world.server(ear.server).is_stopped() {
            self.state().held.entry(ear.server).or_default().push((ear.inbox.clone(), delivery));
        } else {
            put(world, ear.server, &ear.inbox, delivery);
        }
    }
}

fn put(world: &World, server: usize, inbox: &mpsc::Sender<Delivery>, delivery: Delivery) {
    let message = delivery.message.clone();
    if inbox.try_send(delivery).is_ok() {
        world.note_presence(server, &message);
    }
}

impl NetworkState {
    fn ears(&self, subject: &str) -> Vec<ServerSubscription> {
        self.subscriptions.iter().filter(|ear| ear.subject == subject).cloned().collect()
    }

    /// Every listener of an ordinary subject; the next of the queue group on a topic.
    fn recipients(&mut self, subject: &str) -> Vec<u64> {
        let on_it = self.connections.iter().filter(|(_, connection)| connection.subjects.contains(subject));
        let listeners: Vec<u64> = on_it.map(|(connection, _)| *connection).collect();
        if !subject::is_topic(subject) || listeners.is_empty() {
            return listeners;
        }
        let last = self.turns.get(subject).copied().unwrap_or_default();
        let next = listeners.iter().copied().find(|connection| *connection > last).unwrap_or(listeners[0]);
        self.turns.insert(subject.to_owned(), next);
        vec![next]
    }
}
