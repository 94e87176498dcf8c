"""The disk fills up: submitters are told, nobody else suffers, and it is over when there is room again.

The server's data folder is a small file system in a mount namespace of its own, which ends with the process that
holds it. That takes no rights where user namespaces are allowed, and root where they are not.
"""

import contextlib
import os
import pathlib
import shutil
import stat
import subprocess
import time

import pytest

from rig import assert_all_succeeded, assert_intact, assert_no_panic, choose_ports, ending_server, listed, running_echo

DISK_LEN = 96 * 1024 * 1024
BALLAST_LEN = 84 * 1024 * 1024
CONTEXT_LEN = 200_000
FILLING_JOBS_MAX = 200
REFUSALS = 20
RECOVERY_S_MAX = 30
TAIL_S_MAX = 60
NAMESPACES = {"a user namespace": ["unshare", "-rm"], "the rights of root": ["unshare", "-m"]}


class Disk:
    """A small file system that only the processes in its namespace see."""

    def __init__(self, holder, mount_point):
        self.holder = holder
        # Everybody who may look at the holder sees its files here.
        self.files = pathlib.Path(f"/proc/{holder.pid}/root{mount_point}")

    @property
    def ballast(self):
        return self.files / "ballast"

    def wrap(self, binary, directory):
        """A program that runs the binary where the disk is, under its own process id."""
        flags = "-U --preserve-credentials -m" if self.has_own_users() else "-m"
        wrapper = directory / "reveille-on-disk"
        wrapper.write_text(f'#!/bin/sh\nexec nsenter -t {self.holder.pid} {flags} -- "{binary}" "$@"\n')
        wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
        return str(wrapper)

    def has_own_users(self):
        return os.readlink(f"/proc/{self.holder.pid}/ns/user") != os.readlink("/proc/self/ns/user")


@contextlib.contextmanager
def small_disk(mount_point):
    mount_point.mkdir()
    script = f'mount -t tmpfs -o size={DISK_LEN} none "{mount_point}" && echo mounted && exec sleep 600'
    problems = []
    for means, unshare in NAMESPACES.items():
        holder = subprocess.Popen(
            [*unshare, "sh", "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with holder:
            try:
                if holder.stdout.readline() == "mounted\n":
                    yield Disk(holder, mount_point)
                    return
                problems.append(f"{means}: {holder.stderr.read().strip()}")
            finally:
                holder.kill()
    pytest.fail("this test needs a small file system, with either of:\n" + "\n".join(problems))


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path / "data") as disk:
        with disk.ballast.open("wb") as ballast:
            os.posix_fallocate(ballast.fileno(), 0, BALLAST_LEN)
        yield disk


@pytest.fixture
def server(binary, disk, tmp_path):
    with ending_server(disk.wrap(binary, tmp_path), tmp_path) as server:
        choose_ports(server)
        server.start()
        yield server


def fill(server):
    """Submits until the disk is full; gives the inputs and the acknowledged ids back."""
    inputs, acknowledged = [], {}
    for number in range(FILLING_JOBS_MAX):
        inputs.append({"number": number, "text": "x" * CONTEXT_LEN})
        status, answer = submit(server, inputs, number)
        if status != 200:
            assert_full(status, answer)
            assert number > 0, "the disk was full from the start"
            return inputs, acknowledged
        acknowledged[number] = answer["job_id"]
    raise AssertionError(f"{FILLING_JOBS_MAX} jobs did not fill the disk")


def submit(server, inputs, number):
    body = {"topic": "job.echo", "context": inputs[number], "idempotency_key": f"input-{number}"}
    return server.call("POST", "/api/v1/jobs", body)


def assert_full(status, answer):
    assert (status, answer["status"], answer["code"]) == (503, 503, "store_full"), (status, answer)


def assert_holds(server, inputs, acknowledged):
    assert server.call("GET", "/readyz")[0] == 200
    assert server.call("GET", "/healthz")[0] == 200
    assert sorted(listed(server)) == sorted(acknowledged.values())
    for number, job_id in acknowledged.items():
        assert server.job(job_id)["context"] == inputs[number]


def submit_until_taken(server, inputs, acknowledged):
    """There is room again; the input that was refused last is taken."""
    number = len(inputs) - 1
    deadline = time.monotonic() + RECOVERY_S_MAX
    while True:
        status, answer = submit(server, inputs, number)
        if status == 200:
            acknowledged[number] = answer["job_id"]
            return
        assert_full(status, answer)
        assert time.monotonic() < deadline, "there is room, and still the disk is said to be full"
        time.sleep(0.1)


def assert_survives_a_kill(server, disk, inputs, acknowledged):
    server.kill()
    server.start()
    jobs = assert_all_succeeded(server, inputs, acknowledged, TAIL_S_MAX)
    assert len(jobs) == len(acknowledged)
    assert_no_panic(server)
    assert server.stop() == 0
    # SQLite would follow the way into the namespace to where it seems to lead, outside.
    copy = server.log.parent / "copy"
    shutil.copytree(disk.files, copy)
    assert_intact(copy / "reveille.db")


def test_a_full_disk_refuses_jobs_and_keeps_those_it_took(server, disk, echo_binary, tmp_path):
    inputs, acknowledged = fill(server)
    for _ in range(REFUSALS):
        assert_full(*submit(server, inputs, len(inputs) - 1))
    assert_holds(server, inputs, acknowledged)
    # Long enough for the store to try its housekeeping on a full disk.
    time.sleep(2)
    assert_holds(server, inputs, acknowledged)

    disk.ballast.unlink()
    submit_until_taken(server, inputs, acknowledged)
    with running_echo(echo_binary, server, tmp_path, "echo-1"):
        assert_all_succeeded(server, inputs, acknowledged, TAIL_S_MAX)
    assert_survives_a_kill(server, disk, inputs, acknowledged)


def test_a_worker_on_a_full_disk_finishes_when_there_is_room(server, disk, echo_binary, tmp_path):
    inputs, acknowledged = fill(server)
    with running_echo(echo_binary, server, tmp_path, "echo-1"):
        server.wait_for_workers("echo-1")
        # The worker has jobs now whose results find no room.
        time.sleep(3)
        assert server.call("GET", "/readyz")[0] == 200
        assert sorted(listed(server)) == sorted(acknowledged.values())

        disk.ballast.unlink()
        submit_until_taken(server, inputs, acknowledged)
        assert_all_succeeded(server, inputs, acknowledged, TAIL_S_MAX)
    assert_survives_a_kill(server, disk, inputs, acknowledged)


def test_a_server_killed_on_a_full_disk_has_everything_when_there_is_room(server, disk, echo_binary, tmp_path):
    inputs, acknowledged = fill(server)
    server.kill()
    disk.ballast.unlink()
    server.start()

    assert_holds(server, inputs, acknowledged)
    submit_until_taken(server, inputs, acknowledged)
    with running_echo(echo_binary, server, tmp_path, "echo-1"):
        assert_all_succeeded(server, inputs, acknowledged, TAIL_S_MAX)
    assert_survives_a_kill(server, disk, inputs, acknowledged)
