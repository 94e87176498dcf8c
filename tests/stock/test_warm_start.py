"""A killed server starts again with the fleet it had: two hundred workers, real processes, real sockets."""

import concurrent.futures
import contextlib
import http.client
import json
import random
import signal
import subprocess
import sys
import time

import pytest
import redis

from harness import WORKERS, wait_until
from rig import choose_ports, ending_server

MEMBERS = 200
POOLS = 50
BEAT_S = 5
SNAPSHOT_S = 1
UP_S_MAX = 30
DISPATCH_S_MAX = 1
WATCH_S = 10
JOB_PAUSE_S = 0.1
DRILL_S_MAX = 180
SNAPSHOT_KEY = "sys:workers:snapshot"


@pytest.fixture
def server(binary, tmp_path):
    pools = tmp_path / "pools.yaml"
    lines = ["topics:", *(f"  job.warm.p{pool}: warm-{pool}" for pool in range(POOLS))]
    lines += ["pools:", *(f"  warm-{pool}: {{}}" for pool in range(POOLS))]
    pools.write_text("\n".join(lines) + "\n")
    with ending_server(binary, tmp_path) as server:
        server.settings = {"WORKER_SNAPSHOT_INTERVAL": f"{SNAPSHOT_S}s"}
        server.flags = ["--pools", str(pools)]
        choose_ports(server)
        server.start()
        yield server


class Fleet:
    def __init__(self, server, directory):
        self.log = directory / "fleet.jsonl"
        command = [sys.executable, str(WORKERS / "cap_fleet.py"), "--address", server.addresses["nats-door"]]
        command += ["--workers", str(MEMBERS), "--pools", str(POOLS), "--beat-s", str(BEAT_S)]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def said(self):
        # The last line may be half written.
        whole, _, _ = self.log.read_text().rpartition("\n")
        for line in whole.splitlines():
            assert line.startswith("{"), f"the fleet broke down:\n{whole}"
            yield json.loads(line)

    def received(self):
        """When each job came to a worker, and how often."""
        times = {}
        for line in self.said():
            if "job" in line:
                times.setdefault(line["job"], []).append(line["at"])
        return times

    def connected_since(self, moment):
        """When each pool got its first worker back."""
        first = {}
        for line in self.said():
            if "connected" in line and line["at"] > moment:
                first.setdefault(line["pool"], line["at"])
        return first

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def fleet(server, tmp_path):
    fleet = Fleet(server, tmp_path)
    try:
        wait_until("a beat of each", lambda: len(in_pools(listed(server))) == MEMBERS)
        yield fleet
    finally:
        fleet.kill()


def listed(server):
    status, answer = server.call("GET", "/api/v1/workers")
    assert status == 200, (status, answer)
    return answer["items"]


def in_pools(workers):
    """Those who have beaten: a worker that only listens has said nothing of its pool yet."""
    return [worker for worker in workers if worker["pool"]]


def snapshot_of(server):
    """As the runbook reads it: over the RESP door, with any Redis client."""
    with redis.from_url(server.operator_redis_url) as client:
        text = client.get(SNAPSHOT_KEY)
        return json.loads(text) if text else None


def wait_for_snapshot(server):
    def whole():
        snapshot = snapshot_of(server)
        return snapshot and len(in_pools(snapshot["workers"])) == MEMBERS and snapshot

    return wait_until("a snapshot of all", whole)


def restart(server):
    """Kills and starts; gives the first answer about the workers, and when it came."""
    server.kill()
    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as pool:
        starting = pool.submit(server.start)
        deadline = time.monotonic() + UP_S_MAX
        first = None
        while first is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError, http.client.HTTPException):
                first = listed(server)
        up_at = time.monotonic()
        starting.result(UP_S_MAX)
    assert first is not None, "it does not answer"
    return first, up_at


def test_the_snapshot_can_be_read_over_the_resp_door(server, fleet):
    snapshot = wait_for_snapshot(server)

    assert snapshot["writer_id"]
    assert time.strptime(snapshot["captured_at"][:19], "%Y-%m-%dT%H:%M:%S")
    names = {worker["worker_id"] for worker in snapshot["workers"]}
    assert names == server.workers()
    assert {worker["pool"] for worker in snapshot["workers"]} == {f"warm-{pool}" for pool in range(POOLS)}


def test_the_first_answer_after_a_kill_knows_everybody(server, fleet):
    """The fleet is stopped meanwhile, so that nobody is known from a beat."""
    known = server.workers()
    wait_for_snapshot(server)
    fleet.pause()

    first, _ = restart(server)

    assert {worker["worker_id"] for worker in first} == known
    assert all(worker["restored"] for worker in first)
    fleet.go_on()

    def all_heard():
        workers = listed(server)
        return len(workers) == MEMBERS and not any(worker["restored"] for worker in workers)

    wait_until("beats of all", all_heard)


def test_jobs_reach_their_workers_at_once_after_a_kill(server, fleet):
    wait_for_snapshot(server)
    killed_at = time.monotonic()

    first, up_at = restart(server)

    assert len(first) == MEMBERS
    dice, jobs, codes = random.Random(7), {}, []
    while time.monotonic() < up_at + WATCH_S:
        pool = dice.randrange(POOLS)
        submitted_at = time.monotonic()
        job_id = server.submit(f"job.warm.p{pool}", {"n": len(jobs)})
        jobs[job_id] = (f"warm-{pool}", submitted_at)
        codes.append(server.call("GET", f"/api/v1/jobs/{job_id}/explain")[1]["code"])
        time.sleep(JOB_PAUSE_S)
    assert "no_workers" not in codes, codes
    for job_id in jobs:
        assert server.ended_job(job_id)["state"] == "SUCCEEDED"

    received, back = fleet.received(), fleet.connected_since(killed_at)
    late = {}
    for job_id, (pool, submitted_at) in jobs.items():
        waited_s = received[job_id][0] - max(submitted_at, back[pool], up_at)
        if waited_s > DISPATCH_S_MAX:
            late[job_id] = waited_s
    assert not late
    assert all(len(times) == 1 for times in received.values())


def test_the_drill_shows_what_a_warm_start_is_worth(binary, tmp_path):
    command = [binary, "drill", "warm-start", "--workers", "60", "--seconds", "8", "--json"]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=DRILL_S_MAX, check=False)

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["workers"], found["warm"]["known_at_first"], found["warm"]["no_workers"]) == (60, 60, 0), found
    assert found["cold"]["known_at_first"] < 60, found
    assert found["cold"]["no_workers"] > 0, found
    assert found["warm"]["first_dispatch_ms"] < found["cold"]["dispatch_worst_ms"], found
