"""Prints the worked tables of docs/capacity.md from the constants that `python3 bench/capacity` has left.

`python3 bench/capacity/worked.py [FILE]`. Nothing is measured here. CPU is that of a modest pace, which is the dearer one.
"""

import json
import pathlib
import statistics
import sys

FLEETS = (100, 1_000, 10_000, 100_000, 1_000_000)
PACES = (10, 100, 1_000, 3_000)
TYPICAL = ((100, 10), (1_000, 100), (10_000, 300), (100_000, 1_000), (1_000_000, 3_000))
SERVERS = (1, 2, 3)
BEAT_S = 5
DAY_S = 86_400
MIB, GIB = 2**20, 2**30


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

    def servers_us(self, kind, servers):
        """CPU of all servers together."""
        return sum(kind(servers, f"server {number} CPU (µs)") for number in range(1, servers + 1))


def at(servers):
    return f"{servers} server{'s' if servers > 1 else ''}"


def of_workers(c, workers, servers):
    """A second of a fleet that has nothing to do."""
    beats = workers / BEAT_S
    return {
        "server_cores": beats * c.servers_us(c.beat, servers) / servers / 1e6,
        "server_mib": 30 + workers * c.of("memory, 1000000 workers: each (B)") / MIB,
        "nats_cores": beats * c.beat(servers, "nats CPU (µs)") / 1e6,
        "nats_mib": 20 + workers * c.of("connection, NATS server with two subscriptions: its memory (B)") / MIB,
        "nats_in": beats * c.beat(servers, "nats in_bytes (B)") / 1e6,
        "nats_out": beats * c.beat(servers, "nats out_bytes (B)") / 1e6,
        "redis_cores": 0,
        "redis_mib": 2 * workers * c.of("snapshot of 100000 workers in Redis: a worker (B)") / MIB,
    }


def of_jobs(c, pace, servers):
    """A second of so many jobs."""
    return {
        "server_cores": pace * c.servers_us(c.job, servers) / servers / 1e6,
        "nats_cores": pace * c.job(servers, "nats CPU (µs)") / 1e6,
        "nats_in": pace * c.job(servers, "nats in_bytes (B)") / 1e6,
        "nats_out": pace * c.job(servers, "nats out_bytes (B)") / 1e6,
        "redis_cores": pace * c.job(servers, "redis CPU (µs)") / 1e6,
        "redis_gib_day": pace * DAY_S * c.job(servers, "memory in Redis (B)") / GIB,
        "redis_later_gib_day": pace
        * DAY_S
        * (c.job(servers, "memory in Redis (B)") - c.of("kept job: input and result (B)"))
        / GIB,
        "aof": pace * c.job(servers, "aof (B)") / 1e6,
        "audit_gib_day": pace * DAY_S * c.job(servers, "audit in PostgreSQL (B)") / GIB,
        "sqlite_gib_day": pace * DAY_S * sum(c.of(f"job, alone: {table} in SQLite (B)") for table in TABLES) / GIB,
    }


TABLES = ("jobs", "blobs", "audit")


def shown(value):
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2g}" if value >= 0.01 else "< 0.01"


def table(head, rows):
    print(f"\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print("| " + " | ".join(cell if isinstance(cell, str) else shown(cell) for cell in row) + " |")


def main():
    c = Constants(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "bench-out/capacity.json"))
    names = ("server_cores", "server_mib", "nats_cores", "nats_mib", "nats_in", "nats_out", "redis_mib")
    head = ("workers", "servers", "cores a server", "MiB a server", "NATS cores", "NATS MiB", "NATS MB/s in", "MB/s out", "Redis MiB")
    costs = [(f"{workers:,}", str(servers), of_workers(c, workers, servers)) for workers in FLEETS for servers in SERVERS]
    table(head, [(one, two, *(cost[name] for name in names)) for one, two, cost in costs])

    names = ("server_cores", "redis_cores", "redis_gib_day", "redis_later_gib_day", "aof", "nats_cores", "nats_in", "nats_out", "audit_gib_day")
    head = ("jobs/s", "servers", "cores a server", "Redis cores", "Redis GiB, first day", "GiB each later day", "AOF MB/s")
    head = (*head, "NATS cores", "NATS MB/s in", "MB/s out", "audit GiB a day")
    costs = [(f"{pace:,}", str(servers), of_jobs(c, pace, servers)) for pace in PACES for servers in SERVERS]
    table(head, [(one, two, *(cost[name] for name in names)) for one, two, cost in costs])

    rows = []
    for workers, pace in TYPICAL:
        for servers in SERVERS:
            fleet, work = of_workers(c, workers, servers), of_jobs(c, pace, servers)
            both = {name: fleet.get(name, 0) + work.get(name, 0) for name in fleet}
            redis_gib = both["redis_mib"] / 1024 + work["redis_gib_day"]
            bandwidth = (both["nats_in"] + both["nats_out"]) * 8
            cells = (both["server_cores"], both["server_mib"], both["redis_cores"], redis_gib, both["nats_cores"], both["nats_mib"], bandwidth)
            rows.append((f"{workers:,}", f"{pace:,}", str(servers), *cells))
    head = ("workers", "jobs/s", "servers", "cores a server", "MiB a server", "Redis cores", "Redis GiB, jobs kept 1 day")
    table((*head, "NATS cores", "NATS MiB", "NATS Mbit/s"), rows)


main()
