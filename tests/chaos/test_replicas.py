"""Three servers on Redis, NATS and PostgreSQL, while one of them, or what they stand on, is killed or stopped under
load: every job that was acknowledged ends once, with its own result, and there is no job besides."""

import contextlib
import signal
import time

import pytest

from engines import knows, running_engines, running_replicas
from harness import wait_until
from rig import Submitters, Together, assert_all_succeeded, assert_no_panic, running_echo

TAIL_S = 90
# Others count a server out after three seconds of silence; no lock lives for longer than a minute.
SILENT_S = 8
LOCKS_S = 65


@pytest.fixture
def engines(tmp_path):
    folder = tmp_path / "engines"
    folder.mkdir()
    # What was answered is on disk, whatever is killed.
    with running_engines(folder, fsync="always") as engines:
        yield engines


@pytest.fixture
def replicas(binary, tmp_path, engines):
    settings = {"WORKER_SNAPSHOT_INTERVAL": "1s"}
    with running_replicas(binary, tmp_path, engines, 3, settings) as replicas:
        yield replicas


@pytest.fixture
def echoes(echo_binary, replicas, engines, tmp_path):
    with contextlib.ExitStack() as stack:
        names = [f"echo-{number}" for number in range(1, 5)]
        workers = [stack.enter_context(running_echo(echo_binary, replicas[0], tmp_path, name)) for name in names]
        for replica in replicas:
            replica.wait_for_workers(*names)
        # What they said of themselves outlives any server.
        snapshot = lambda: engines.redis.cli("GET", "sys:workers:snapshot")
        wait_until("a snapshot", lambda: all(name in snapshot() for name in names))
        yield workers


def survive(replicas, dice, blows, blow):
    """Deals blow after blow while jobs come in; then checks every job."""
    inputs = [{"number": number, "sleep_ms": dice.choice([0, 0, 0, 300])} for number in range(1500)]
    together = Together(replicas)
    with Submitters(together, inputs, pause_s=0.1) as submitters:
        for number in range(blows):
            submitters.wait_for(min(len(inputs) - 1, len(inputs) * (number + 1) // (blows + 2)))
            blow(number)
        submitters.finish()
    for replica in replicas:
        wait_until("every server is back", lambda replica=replica: knows(replica, len(replicas)), 60)
    jobs = assert_all_succeeded(together, inputs, submitters.acknowledged, TAIL_S)
    for job in jobs:
        assert sum(mark["event"] == "assign" for mark in job["timeline"]) == job["attempts"], job
    again = sum(job["attempts"] > 1 for job in jobs)
    print(f"{blows} blows, {submitters.broken_calls} broken calls, {again} jobs in more than one attempt")
    for replica in replicas:
        assert_no_panic(replica)


def test_a_server_is_killed_again_and_again(replicas, echoes, dice):
    def kill_one(number):
        replica = replicas[number % len(replicas)]
        replica.kill()
        time.sleep(dice.uniform(0, 3))
        replica.start()

    survive(replicas, dice, 6, kill_one)


def test_nats_is_killed_and_comes_back(replicas, echoes, engines, dice):
    def kill_nats(_):
        engines.nats.kill()
        time.sleep(dice.uniform(0, 2))
        engines.nats.start()

    survive(replicas, dice, 3, kill_nats)


def test_redis_is_killed_and_comes_back(replicas, echoes, engines, dice):
    def kill_redis(_):
        engines.redis.kill()
        time.sleep(dice.uniform(0, 2))
        engines.redis.start()

    survive(replicas, dice, 3, kill_redis)


def stop(replicas, number, seconds):
    """Stops one server where it is, whatever it has in hand, for so long that the others take over."""
    replica, others = replicas[number], [*replicas[:number], *replicas[number + 1 :]]
    replica.process.send_signal(signal.SIGSTOP)
    try:
        until = time.monotonic() + seconds
        for other in others:
            wait_until("the others go on without it", lambda other=other: knows(other, len(others)))
        time.sleep(max(0, until - time.monotonic()))
    finally:
        replica.process.send_signal(signal.SIGCONT)


def test_a_server_is_stopped_for_longer_than_others_wait(replicas, echoes, dice):
    survive(replicas, dice, 2, lambda number: stop(replicas, number, SILENT_S))


def test_a_server_is_stopped_for_longer_than_any_lock_lives(replicas, echoes, dice):
    """What it held when it was stopped is others' by the time that it goes on."""
    survive(replicas, dice, 1, lambda number: stop(replicas, number, LOCKS_S))
