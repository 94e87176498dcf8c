//! Faults that come by themselves rather than with a call: crashes, pauses, outages, and everything
//! that befalls workers.

use crate::faults::Fault;
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
    }
}

async fn upset_the_server(world: &Arc<World>) {
    if let Some((_, life)) = world.server.engine()
        && world.strikes(Fault::CrashBetween)
    {
        world.kill(&life, "between two steps");
    }
    if world.strikes(Fault::ServerPaused) {
        let ms = world.dice.between(2_100, 50_000);
        world.trace.say(format_args!("everything stands still for {ms} ms"));
        world.watched.paused(ms);
        world.calm.disturbed(world.now() + ms);
        tokio::time::advance(Duration::from_millis(ms as u64)).await;
    }
}

fn upset_the_ports(world: &World) {
    let until = || world.now() + world.dice.skewed(500, 40_000);
    if world.strikes(Fault::StoreUnavailable) {
        world.outages.store_is_away(until());
    }
    if world.strikes(Fault::StoreFull) {
        world.outages.disk_is_full(until());
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
