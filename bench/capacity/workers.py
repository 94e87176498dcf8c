"""What a worker costs: memory, beats, connections, the snapshot, and the start after it."""

import math
import time

import gauges
from harness import wait_until
from load import Fleet, connected, worker_id
from stands import alone, together

BEATS = 200_000
BEATS_A_SECOND = 20_000
CONNECTIONS = 4_000
LOOKS = 20


def settled(stand, count):
    """Every server has heard of so many workers."""
    for server in stand.servers:
        wait_until(f"{count} workers", lambda server=server: gauges.metric(server, "workers ") >= count, 120)


def heard(server, count):
    wait_until(f"{count} beats", lambda: gauges.metric(server, "heartbeats_total") >= count, 120)


def memory(binary, size):
    """Resident memory of one server that knows so many workers, through the NATS door; a beat and a look at it then."""
    what = f"{size} workers"
    with alone(binary) as stand:
        process = stand.first.process.pid
        time.sleep(2)
        before = gauges.memory_bytes(process)
        fleet = Fleet(stand.nats_port, size)
        fleet.join()
        heard(stand.first, size)
        used = gauges.cpu_s(process)
        time.sleep(1)
        still = gauges.cpu_s(process) - used
        used, began = gauges.cpu_s(process), time.monotonic()
        rounds = max(1, BEATS // size)
        fleet.beat(rounds * size, 100_000)
        heard(stand.first, (rounds + 1) * size)
        used = gauges.cpu_s(process) - used - still * (time.monotonic() - began)
        time.sleep(2)
        grown = gauges.memory_bytes(process) - before
        looks = gauges.cpu_s(process)
        for _ in range(LOOKS):
            gauges.metric(stand.first, "workers ")
        looks = gauges.cpu_s(process) - looks
        fleet.leave()
    return {
        f"memory, {what}: in all (MiB)": grown / 2**20,
        f"memory, {what}: each (B)": grown / size,
        f"beat among {what}, one connection: server CPU (µs)": used * 1e6 / rounds / size,
        f"a second without beats, {what}: server CPU (ms)": still * 1000,
        f"a look at /metrics, {what}: server CPU (ms)": looks * 1000 / LOOKS,
    }


def beats(binary, count, connections):
    """CPU and bytes of a beat. `count` servers on NATS, or 0: one alone, with its door."""
    size = 10_000
    with together(binary, count) if count else alone(binary) as stand:
        fleet = Fleet(stand.nats_port, size, connections)
        fleet.join()
        settled(stand, size)
        still = idle(stand)
        before, known = gauges.take(stand), [gauges.metric(server, "heartbeats_total") for server in stand.servers]
        began = time.monotonic()
        fleet.beat(BEATS, BEATS_A_SECOND)
        # What was sent is not yet dealt with on a busy machine.
        for server, first in zip(stand.servers, known, strict=True):
            heard(server, first + BEATS)
        took = time.monotonic() - began
        used = gauges.spent(before, gauges.take(stand))
        fleet.leave()
    figures = each(f"beat, {at(count)}, {connections} connections", used, still, took, BEATS)
    return figures | {"beat: bytes with the line around it (B)": len(fleet.beats[0][0])}


def at(count):
    return f"{count} server{'s' if count > 1 else ''}" if count else "door"


def idle(stand, seconds=4):
    """What everybody uses in a second while nothing happens."""
    before = gauges.take(stand)
    time.sleep(seconds)
    return {name: used / seconds for name, used in gauges.spent(before, gauges.take(stand)).items()}


def each(what, used, still, took, count):
    """Per unit, without what would have been used anyway. CPU in µs, the rest as it is."""
    figures = {}
    for name, value in used.items():
        value = max(0, value - still[name] * took) / count
        if name.startswith("server") or name in ("redis", "nats", "postgres"):
            figures[f"{what}: {name} CPU (µs)"] = value * 1e6
        else:
            figures[f"{what}: {name} ({'messages' if 'msgs' in name else 'B'})"] = value
    return figures


def rest(binary, count):
    """What servers and engines use when nobody does anything: of one core, and memory."""
    with together(binary, count) if count else alone(binary) as stand:
        time.sleep(3)
        still = idle(stand, 10)
        figures = {
            f"idle, {at(count)}: {name} (% of a core)": used * 100
            for name, used in still.items()
            if name in ("redis", "nats", "postgres") or name.startswith("server")
        }
        processes = {"server": stand.first.process.pid}
        if stand.engines:
            processes |= {"redis": stand.engines.redis.process.pid, "nats": stand.engines.nats.process.pid}
        for name, process in processes.items():
            figures[f"idle, {at(count)}: memory of {name} (MiB)"] = gauges.memory_bytes(process) / 2**20
    return figures


def snapshot(binary, size, shared):
    """The snapshot of so many workers: its size, what writing it takes, and the start after it."""
    where = "Redis" if shared else "SQLite"
    what = f"snapshot of {size} workers in {where}"
    # So long that it can be told from what else goes on.
    interval = {"REVEILLE_FLEET_SNAPSHOT_INTERVAL": f"{max(30, size // 4_000)}s"}
    with together(binary, 1, **interval) if shared else alone(binary, **interval) as stand:
        server = stand.first
        fleet = Fleet(stand.nats_port, size)
        # A NATS server hands on what a slow reader loses; the door waits.
        fleet.join(30_000 if shared else 100_000)
        settled(stand, size)
        fleet.leave()
        process = server.process.pid
        gauges.forget_peak(process)
        resting = gauges.memory_bytes(process)
        engines = [stand.engines.redis.process.pid] if shared else []
        before, bursts = gauges.take(stand), gauges.Bursts([process, *engines])
        wrote = writes(server)
        while writes(server)[0] == wrote[0]:
            bursts.watch(5)
        used, done = gauges.spent(before, gauges.take(stand)), writes(server)
        times, took = done[0] - wrote[0], done[1] - wrote[1]
        # Rest, to tell it from; the next comes only after twenty times as long.
        bursts.watch(min(60, 10 + 2 * took))
        whole = gauges.metric(server, "worker_snapshot_bytes ")
        figures = {
            f"{what}: size (MiB)": whole / 2**20,
            f"{what}: a worker (B)": whole / size,
            f"{what}: time to write (ms)": took / times * 1000,
            f"{what}: server CPU (ms)": bursts.cpu_s(process) / times * 1000,
            f"{what}: memory on top while it is written (MiB)": (gauges.peak_bytes(process) - resting) / 2**20,
        }
        if shared:
            figures[f"{what}: Redis CPU (ms)"] = bursts.cpu_s(engines[0]) / times * 1000
            figures[f"{what}: appended to the AOF (MiB)"] = used["aof"] / times / 2**20
            figures[f"{what}: memory of Redis, peak (MiB)"] = gauges.peak_bytes(engines[0]) / 2**20
            figures[f"{what}: memory in Redis (MiB)"] = (
                int(stand.engines.redis.cli("MEMORY", "USAGE", "sys:workers:snapshot")) / 2**20
            )
        server.kill()
        began = time.monotonic()
        server.start()
        figures[f"{what}: start after kill -9, until /readyz (s)"] = time.monotonic() - began
        figures[f"{what}: CPU of that start (s)"] = gauges.cpu_s(server.process.pid)
        figures[f"{what}: workers known after it"] = gauges.metric(server, "workers_hydrated")
    return figures


def writes(server):
    return tuple(gauges.metric(server, f"worker_snapshot_write_seconds_{part}") for part in ("count", "sum"))


def connections(binary):
    """Memory of a connection that a worker keeps open: at the NATS door and at a NATS server."""
    figures = {}
    with alone(binary) as stand:
        grown = open_many(stand.nats_port, stand.first.process.pid)
        figures["connection, NATS door with two subscriptions: server memory (B)"] = grown
    with together(binary, 1) as stand:
        grown = open_many(stand.nats_port, stand.engines.nats.process.pid)
        figures["connection, NATS server with two subscriptions: its memory (B)"] = grown
    return figures


def open_many(port, process):
    time.sleep(2)
    before = gauges.memory_bytes(process)
    sockets = [connected(port) for _ in range(CONNECTIONS)]
    for index, one in enumerate(sockets):
        one.sendall(b"SUB worker.%s.jobs 1\r\nSUB job.echo job.echo 2\r\nPING\r\n" % worker_id(index).encode())
    for one in sockets:
        said = b""
        while b"PONG" not in said:
            said += one.recv(4096)
    time.sleep(2)
    grown = gauges.memory_bytes(process) - before
    for one in sockets:
        one.close()
    return math.floor(grown / CONNECTIONS)
