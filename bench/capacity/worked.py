"""Prints the worked tables of docs/capacity.md from the constants that `python3 bench/capacity` has left.

`python3 bench/capacity/worked.py [FILE]`. Nothing is measured here. CPU is that of a modest pace, which is the
dearer one.
"""

import json
import pathlib
import statistics
import sys

FLEETS = (100, 1_000, 10_000, 100_000, 1_000_000)
PACES = (10, 100, 1_000, 2_000)
TYPICAL = ((100, 10), (1_000, 100), (10_000, 300), (100_000, 1_000), (1_000_000, 2_000))
BEAT_S = 5
DAY_S = 86_400
MIB, GIB = 2**20, 2**30

OF_FLEET = {
    "server_cores": "cores a server",
    "server_mib": "MiB a server",
    "nats_cores": "NATS cores",
    "nats_mib": "NATS MiB",
    "nats_in": "NATS MB/s in",
    "nats_out": "MB/s out",
    "redis_mib": "Redis MiB",
}
OF_JOBS = {
    "server_cores": "cores a server",
    "redis_cores": "Redis cores",
    "redis_first_gib": "Redis GiB, first day",
    "redis_later_gib": "GiB each later day",
    "aof": "AOF MB/s",
    "nats_cores": "NATS cores",
    "nats_in": "NATS MB/s in",
    "nats_out": "MB/s out",
    "audit_gib": "audit GiB a day",
}
OF_BOTH = {
    "server_cores": "cores a server",
    "server_mib": "MiB a server",
    "redis_cores": "Redis cores",
    "redis_gib": "Redis GiB, jobs kept 1 day",
    "nats_cores": "NATS cores",
    "nats_mib": "NATS MiB",
    "nats_mbit": "NATS Mbit/s",
}


class Constants:
    def __init__(self, path):
        figures = json.loads(path.read_text())
        self.medians = {name: statistics.median(values) for name, values in figures.items()}

    def of(self, name):
        return self.medians[name]

    def beat(self, servers, name):
        return self.of(f"beat, {at(servers)}, 1000 connections: {name}")

    def job(self, servers, name):
        return self.of(f"job, {at(servers)}, 400 a second: {name}")

    def server_us(self, kind, servers):
        """CPU of one of the servers, on average."""
        return sum(kind(servers, f"server {number} CPU (µs)") for number in range(1, servers + 1)) / servers


def at(servers):
    return f"{servers} server{'s' if servers > 1 else ''}"


def of_fleet(c, workers, servers):
    """A fleet that has nothing to do."""
    beats = workers / BEAT_S
    worker_bytes = c.of("memory, 1000000 workers: each (B)")
    # One of them needs this too for a moment, and it may be any.
    snapshot_mib = c.of("snapshot of 100000 workers in SQLite: memory on top while it is written (MiB)") / 1e5
    redis_mib = c.of("snapshot of 100000 workers in Redis: memory of Redis, peak (MiB)") / 1e5
    connection_bytes = c.of("connection, NATS server with two subscriptions: its memory (B)")
    return {
        "server_cores": beats * c.server_us(c.beat, servers) / 1e6,
        "server_mib": c.of("idle, 1 server: memory of server (MiB)") + workers * (worker_bytes / MIB + snapshot_mib),
        "nats_cores": beats * c.beat(servers, "nats CPU (µs)") / 1e6,
        "nats_mib": c.of("idle, 1 server: memory of nats (MiB)") + workers * connection_bytes / MIB,
        "nats_in": beats * c.beat(servers, "nats in_bytes (B)") / 1e6,
        "nats_out": beats * c.beat(servers, "nats out_bytes (B)") / 1e6,
        "redis_mib": workers * redis_mib,
    }


def of_jobs(c, pace, servers):
    """So many jobs a second."""
    kept_bytes, blob_bytes = c.job(servers, "memory in Redis (B)"), c.of("kept job: input and result (B)")
    a_day_gib = pace * DAY_S / GIB
    return {
        "server_cores": pace * c.server_us(c.job, servers) / 1e6,
        "redis_cores": pace * c.job(servers, "redis CPU (µs)") / 1e6,
        "redis_first_gib": a_day_gib * kept_bytes,
        "redis_later_gib": a_day_gib * (kept_bytes - blob_bytes),
        "aof": pace * c.job(servers, "aof (B)") / 1e6,
        "nats_cores": pace * c.job(servers, "nats CPU (µs)") / 1e6,
        "nats_in": pace * c.job(servers, "nats in_bytes (B)") / 1e6,
        "nats_out": pace * c.job(servers, "nats out_bytes (B)") / 1e6,
        "audit_gib": a_day_gib * c.job(servers, "audit in PostgreSQL (B)"),
    }


def of_both(c, workers, pace, servers):
    fleet, jobs = of_fleet(c, workers, servers), of_jobs(c, pace, servers)
    both = {name: fleet.get(name, 0) + jobs.get(name, 0) for name in fleet | jobs}
    both["redis_gib"] = fleet["redis_mib"] / 1024 + jobs["redis_first_gib"]
    both["nats_mbit"] = (both["nats_in"] + both["nats_out"]) * 8
    return both


def shown(value):
    if value < 0.01:
        return "< 0.01"
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def table(first, columns, rows):
    head = [*first, *columns.values()]
    print(f"\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for about, costs in rows:
        cells = [*(f"{number:,}" for number in about), *(shown(costs[name]) for name in columns)]
        print(f"| {' | '.join(cells)} |")


def main():
    c = Constants(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "bench-out/capacity.json"))
    fleets = [(workers, servers) for workers in FLEETS for servers in (1, 3)]
    table(("workers", "servers"), OF_FLEET, [(about, of_fleet(c, *about)) for about in fleets])
    paces = [(pace, servers) for pace in PACES for servers in (1, 3)]
    table(("jobs/s", "servers"), OF_JOBS, [(about, of_jobs(c, *about)) for about in paces])
    typical = [(*about, servers) for about in TYPICAL for servers in (1, 2, 3)]
    table(("workers", "jobs/s", "servers"), OF_BOTH, [(about, of_both(c, *about)) for about in typical])


main()
