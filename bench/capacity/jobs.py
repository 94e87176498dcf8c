"""What a job costs, from HTTP to SUCCEEDED through workers of our own SDK: CPU, round trips, bytes."""

import collections
import contextlib
import re
import sqlite3
import time

import gauges
from harness import wait_until
from load import submit
from rig import EchoWorker
from stands import alone, together
from workers import at, each, idle

JOBS = 4_000
WORKERS = 4
WATCHED_JOBS = 500
WAITING_JOBS = 10_000


def succeeded(stand):
    return sum(gauges.metric(server, "jobs_completed_total", "SUCCEEDED") for server in stand.servers)


def run(stand, count, rate):
    before = succeeded(stand)
    submit(stand.servers, count, rate)
    wait_until(f"{count} jobs to succeed", lambda: succeeded(stand) >= before + count, 120)


def jobs(binary, echo, count, rate):
    """`count` servers on the engines, or 0: one alone. `rate` jobs a second, or 0: as fast as they are answered."""
    what = f"job, {at(count) if count else 'alone'}, {f'{rate} a second' if rate else 'without a pause'}"
    with contextlib.ExitStack() as stack:
        stand = stack.enter_context(together(binary, count) if count else alone(binary))
        for number in range(WORKERS):
            stack.callback(EchoWorker(echo, stand.first, stand.folder, f"echo-{number}").kill)
        stand.first.wait_for_workers(*(f"echo-{number}" for number in range(WORKERS)))
        run(stand, 500, 400)
        sealed(stand)
        still = idle(stand)
        kept, before, began = sizes(stand), gauges.take(stand), time.monotonic()
        run(stand, JOBS, rate)
        took = time.monotonic() - began
        used = gauges.spent(before, gauges.take(stand))
        sealed(stand)
        figures = each(what, used, still, took, JOBS)
        grown = gauges.spent(kept, sizes(stand))
        figures |= {f"{what}: {name} (B)": value / JOBS for name, value in grown.items()}
        if count == 1 and rate:
            figures |= trips(stand)
        if not count and rate:
            stand.first.stop()
            figures |= in_file(stand.first.data / "reveille.db", JOBS + 500)
    return figures


def sealed(stand):
    """The audit trail is in PostgreSQL."""
    if stand.engines:
        wait_until("the audit trail", lambda: stand.engines.redis.cli("XLEN", "audit:outbox") == "0")


def sizes(stand):
    if stand.engines is None:
        return {}
    redis, nats, postgres = stand.engines.all()
    streams = gauges.nats_page(nats, "jsz")
    return {
        "memory in Redis": used_memory(redis),
        "audit in PostgreSQL": gauges.ask_postgres(postgres, "SELECT pg_total_relation_size('audit')"),
        "streams on the disk of NATS": streams["storage"],
    }


def kept(binary, echo):
    """What of an ended job is where in the memory of Redis. Input and result go after `jobs.blob_hours`."""
    with together(binary, 1) as stand, contextlib.ExitStack() as stack:
        stack.callback(EchoWorker(echo, stand.first, stand.folder, "echo-0").kill)
        stand.first.wait_for_workers("echo-0")
        redis, nats, _ = stand.engines.all()
        written = gauges.written_bytes(nats.process.pid)
        run(stand, WATCHED_JOBS, 400)
        sealed(stand)
        written = gauges.written_bytes(nats.process.pid) - written
        job = redis.cli("ZRANGE", "job:index:ended", "-1", "-1")
        figures = {"job, 1 server: written to the disk by NATS (B)": written / WATCHED_JOBS}
        for name in ("job:rec:", "job:meta:", "ctx:", "res:"):
            figures[f"kept job: {name} (B)"] = int(redis.cli("MEMORY", "USAGE", name + job))
        before = used_memory(redis)
        keys = redis.cli("--scan", "--pattern", "ctx:*").split() + redis.cli("--scan", "--pattern", "res:*").split()
        for start in range(0, len(keys), 200):
            redis.cli("DEL", *keys[start : start + 200])
        redis.cli("ZREMRANGEBYRANK", "blob:ends", "0", "-1")
        blobs = (before - used_memory(redis)) / WATCHED_JOBS
        figures["kept job: input and result (B)"] = blobs
    return figures


def waiting(binary, count):
    """Memory for a job that waits, because there is no worker for it."""
    with together(binary, count) if count else alone(binary) as stand:
        submit(stand.servers, 1_000, 0)
        time.sleep(1)
        process = stand.first.process.pid
        before, kept_before = gauges.memory_bytes(process), used_memory(stand.engines.redis) if count else 0
        submit(stand.servers, WAITING_JOBS, 0)
        time.sleep(1)
        what = f"waiting job, {at(count) if count else 'alone'}"
        figures = {f"{what}: server memory (B)": (gauges.memory_bytes(process) - before) / WAITING_JOBS}
        if count:
            grown = used_memory(stand.engines.redis) - kept_before
            figures[f"{what}: memory in Redis (B)"] = grown / WAITING_JOBS
    return figures


def used_memory(redis):
    return int(gauges.redis_info(redis, "memory")["used_memory"])


def trips(stand):
    """What clients send to Redis for a job, by command, and what servers and workers share of it."""
    redis = stand.engines.redis
    before = calls(redis)
    with redis.monitor() as sent:
        time.sleep(2)
        resting = len(sent()) / 2
        began, first = time.monotonic(), len(sent())
        run(stand, WATCHED_JOBS, 400)
        took = time.monotonic() - began
        lines = sent()[first:]
    asked = [line for line in lines if " lua] " not in line]
    names = collections.Counter(re.search(r'\] "([^"]+)"', line)[1].lower() for line in asked if '] "' in line)
    figures = {"job, 1 server: round trips to Redis": (len(asked) - resting * took) / WATCHED_JOBS}
    for name, times in names.most_common(6):
        figures[f"job, 1 server: of these {name}"] = times / WATCHED_JOBS
    figures["job, 1 server: commands in Redis, those of scripts included"] = (calls(redis) - before) / WATCHED_JOBS
    return figures


def calls(redis):
    stats = gauges.redis_info(redis, "commandstats")
    return sum(int(re.search(r"calls=(\d+)", line)[1]) for line in stats.values())


def in_file(path, jobs_kept):
    """Bytes of each table and its indexes in the SQLite file, for each job."""
    with contextlib.closing(sqlite3.connect(path)) as file:
        rows = file.execute(
            "SELECT m.tbl_name, sum(s.pgsize) FROM dbstat s JOIN sqlite_master m ON m.name = s.name GROUP BY 1"
        ).fetchall()
    return {f"job, alone: {name} in SQLite (B)": size / jobs_kept for name, size in rows if size > 50 * jobs_kept}
