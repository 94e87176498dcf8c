//! Faults that come by themselves rather than with a call: crashes, pauses, outages, and everything
//! that befalls workers.

use crate::faults::Fault;
use crate::links::Dependency;
use crate::outages::Backend;
use crate::server::SimServer;
use crate::world::{World, sleep_ms};
use reveille_core::time::Millis;
use std::sync::Arc;
use std::time::Duration;

/// What a server that is cut from what is kept does not reach.
const CUTS: [&[Dependency]; 3] =
    [&[Dependency::Store], &[Dependency::Roster], &[Dependency::Store, Dependency::Roster]];

/// Stirs until it is told to stop.
pub async fn stir(world: Arc<World>) {
    loop {
        sleep_ms(world.rng.between(1_000, 9_000)).await;
        upset_the_server(&world).await;
        upset_the_ports(&world);
        upset_a_worker(&world);
        upset_an_agent(&world);
        upset_a_workspace(&world);
    }
}

async fn upset_the_server(world: &Arc<World>) {
    let server = world.rng.pick(world.servers()).clone();
    if let Some((_, life)) = server.engine()
        && world.strikes(Fault::CrashBetween)
    {
        world.kill(&life, "between two steps");
    }
    if world.plan.is_shared() {
        part_from_the_others(world, &server);
    }
    if world.strikes(Fault::ServerPaused) {
        let ms = world.rng.between(2_100, 60_000);
        world.trace.say(format_args!("everything stands still for {ms} ms"));
        world.servers().iter().filter(|server| server.hears()).for_each(|server| server.watched.paused(ms));
        world.agents_watched.paused(ms);
        world.workspaces_watched.paused(ms);
        world.calm.disturbed(world.now() + ms);
        world.roster_calm.disturbed(world.now() + ms);
        tokio::time::advance(Duration::from_millis(ms as u64)).await;
    }
}

/// One of several stands still, or does not reach what the others reach. One trouble at a time.
fn part_from_the_others(world: &Arc<World>, server: &Arc<SimServer>) {
    if server.is_stopped() || !server.links.are_whole() {
        return;
    }
    // Longer than every lock lasts, or a moment.
    let ms = world.rng.pick(&[2_100, 4_000, 10_000, 40_000, 70_000]) + world.rng.between(0, 5_000);
    let until = world.now() + ms;
    let ways: &[Dependency] = if world.strikes(Fault::ServerStopped) {
        &[]
    } else if world.strikes(Fault::CutFromStore) {
        CUTS[world.rng.below(3) as usize]
    } else if world.strikes(Fault::CutFromBus) {
        &[Dependency::Bus]
    } else if world.strikes(Fault::CutOff) {
        &[Dependency::Store, Dependency::Roster, Dependency::Bus]
    } else {
        return;
    };
    world.calm.disturbed(until);
    world.roster_calm.disturbed(until);
    let (world, server) = (world.clone(), server.clone());
    if ways.is_empty() {
        world.trace.say(format_args!("server {} is stopped for {ms} ms", server.number));
        server.stop(world.now());
        tokio::spawn(async move {
            sleep_ms(until.since(world.now())).await;
            world.trace.say(format_args!("server {} goes on", server.number));
            server.go_on(&world);
        });
    } else {
        world.trace.say(format_args!("server {} is cut from {ways:?} for {ms} ms", server.number));
        server.cut(ways, world.now());
        tokio::spawn(async move {
            sleep_ms(until.since(world.now())).await;
            server.heal(world.now());
        });
    }
}

fn upset_the_ports(world: &Arc<World>) {
    let until = || world.now() + world.rng.skewed(500, 40_000);
    if world.strikes(Fault::StoreUnavailable) {
        world.outages.is_away(Backend::Store, until());
    }
    if world.strikes(Fault::StoreFull) {
        world.outages.is_full(Backend::Store, until());
    }
    if world.strikes(Fault::RosterUnavailable) {
        world.outages.is_away(Backend::Roster, until());
    }
    if world.strikes(Fault::RosterFull) {
        world.outages.is_full(Backend::Roster, until());
    }
    if world.strikes(Fault::BusUnavailable) {
        let until = until();
        if world.plan.is_shared() {
            bus_is_away_from_all(world, until);
        } else {
            world.outages.bus_is_away(until);
        }
    }
}

fn bus_is_away_from_all(world: &Arc<World>, until: Millis) {
    let until = until.max(world.now() + 2_100);
    let whole = |server: &&Arc<SimServer>| !server.is_stopped() && server.links.are_whole();
    for server in world.servers().iter().filter(whole) {
        server.cut(&[Dependency::Bus], world.now());
        let (world, server) = (world.clone(), server.clone());
        tokio::spawn(async move {
            sleep_ms(until.since(world.now())).await;
            server.heal(world.now());
        });
    }
    world.calm.disturbed(until);
}

fn upset_a_worker(world: &World) {
    let worker = world.rng.pick(world.workers());
    let say = |what: &str| world.trace.say(format_args!("{} {what}", worker.plan.name));
    if !worker.is_alive() {
        if world.strikes(Fault::WorkerRestarted) {
            say("is started again");
            worker.restart(world);
        }
        return;
    }
    if world.is_spared(worker) {
        return;
    }
    if world.strikes(Fault::WorkerDied) {
        say("dies");
        worker.die(world);
    } else if world.strikes(Fault::WorkerDiedSilently) {
        say("dies, and its connection stays");
        worker.die_silently();
    } else if world.strikes(Fault::WorkerStalled) {
        say("stalls");
        worker.stall(world.now() + world.rng.between(1_000, 90_000));
    } else if world.strikes(Fault::WorkerReconnected) {
        say("loses its connection");
        worker.lose_connection(world);
    }
}

fn upset_an_agent(world: &World) {
    let agent = world.rng.pick(world.agents());
    let say = |what: &str| world.trace.say(format_args!("{}'s agent {} {what}", agent.key.0, agent.key.1));
    if !agent.is_alive() {
        if world.strikes(Fault::AgentReturned) {
            say("is back");
            agent.come_back();
        }
    } else if world.strikes(Fault::AgentDied) {
        say("dies");
        agent.die();
    } else if world.strikes(Fault::AgentStalled) {
        say("stalls");
        agent.stall(world.now() + world.rng.between(1_000, 120_000));
    }
}

fn upset_a_workspace(world: &World) {
    let workspace = world.rng.pick(world.workspaces());
    let say = |what: &str| world.trace.say(format_args!("{} {what}", workspace.id));
    if !workspace.is_alive() {
        if world.strikes(Fault::WorkspaceReturned) {
            say("is back");
            workspace.come_back();
        }
    } else if world.strikes(Fault::WorkspaceDied) {
        say("dies");
        workspace.die();
    } else if world.strikes(Fault::WorkspaceMoved) {
        say("moves");
        workspace.move_away();
    }
}
