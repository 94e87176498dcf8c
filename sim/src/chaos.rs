//! Faults that come by themselves rather than with a call: crashes, pauses, outages, and everything
//! that befalls workers.

use crate::faults::Fault;
use crate::outages::Kept;
use crate::world::{World, sleep_ms};
use std::sync::Arc;
use std::time::Duration;

/// Stirs until it is told to stop.
pub async fn stir(world: Arc<World>) {
    loop {
        sleep_ms(world.dice.between(1_000, 9_000)).await;
        upset_the_server(&world).await;
        upset_the_ports(&world);
        upset_a_worker(&world);
        upset_an_agent(&world);
        upset_a_workspace(&world);
    }
}

async fn upset_the_server(world: &Arc<World>) {
    if let Some((_, life)) = world.server.engine()
        && world.strikes(Fault::CrashBetween)
    {
        world.kill(&life, "between two steps");
    }
    if world.strikes(Fault::ServerPaused) {
        let ms = world.dice.between(2_100, 60_000);
        world.trace.say(format_args!("everything stands still for {ms} ms"));
        world.watched.paused(ms);
        world.agents_watched.paused(ms);
        world.workspaces_watched.paused(ms);
        world.calm.disturbed(world.now() + ms);
        world.roster_calm.disturbed(world.now() + ms);
        tokio::time::advance(Duration::from_millis(ms as u64)).await;
    }
}

fn upset_the_ports(world: &World) {
    let until = || world.now() + world.dice.skewed(500, 40_000);
    if world.strikes(Fault::StoreUnavailable) {
        world.outages.is_away(Kept::Store, until());
    }
    if world.strikes(Fault::StoreFull) {
        world.outages.is_full(Kept::Store, until());
    }
    if world.strikes(Fault::RosterUnavailable) {
        world.outages.is_away(Kept::Roster, until());
    }
    if world.strikes(Fault::RosterFull) {
        world.outages.is_full(Kept::Roster, until());
    }
    if world.strikes(Fault::BusUnavailable) {
        world.outages.bus_is_away(until());
    }
}

fn upset_a_worker(world: &World) {
    let worker = world.dice.pick(world.workers());
    let say = |what: &str| world.trace.say(format_args!("{} {what}", worker.plan.name));
    if !worker.is_alive() {
        if world.strikes(Fault::WorkerRestarted) {
            say("is started again");
            worker.restart(world);
        }
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
        worker.stall(world.now() + world.dice.between(1_000, 90_000));
    } else if world.strikes(Fault::WorkerReconnected) {
        say("loses its connection");
        worker.lose_connection(world);
    }
}

fn upset_an_agent(world: &World) {
    let agent = world.dice.pick(world.agents());
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
        agent.stall(world.now() + world.dice.between(1_000, 120_000));
    }
}

fn upset_a_workspace(world: &World) {
    let workspace = world.dice.pick(world.workspaces());
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
