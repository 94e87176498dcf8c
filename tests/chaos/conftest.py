"""Fixtures: the two binaries under test, and a server on ports that stay its own while it is down."""

import contextlib
import os
import pathlib
import random

import pytest

from harness import running_worker
from rig import choose_ports, ending_server, running_echo


def built(variable, default):
    path = pathlib.Path(os.environ.get(variable, default)).resolve()
    assert path.is_file(), f"nothing at {path}: build it, or name it in {variable}"
    return str(path)


@pytest.fixture(scope="session")
def binary():
    return built("REVEILLE_BIN", "target/release/reveille")


@pytest.fixture(scope="session")
def echo_binary():
    return built("REVEILLE_ECHO_BIN", "target/release/examples/echo")


@pytest.fixture
def dice():
    """Every random choice of a test; its seed is shown when the test failed, and can be given."""
    seed = os.environ.get("REVEILLE_CHAOS_SEED") or random.randrange(2**32)
    print(f"REVEILLE_CHAOS_SEED={seed}")
    return random.Random(int(seed))


@pytest.fixture
def server(binary, tmp_path):
    with ending_server(binary, tmp_path) as server:
        choose_ports(server)
        server.start()
        yield server


@pytest.fixture
def start_echo(echo_binary, server, tmp_path):
    """Starts a worker of our own SDK and returns once the server knows it."""
    with contextlib.ExitStack() as workers:

        def start(worker_id):
            worker = workers.enter_context(running_echo(echo_binary, server, tmp_path, worker_id))
            server.wait_for_workers(worker_id)
            return worker

        yield start


@pytest.fixture
def start_agent(server, tmp_path):
    """Starts a stock Agent and returns once the server knows it."""
    with contextlib.ExitStack() as workers:

        def start(worker_id, *arguments):
            arguments = ("--worker-id", worker_id, *arguments)
            worker = workers.enter_context(running_worker("echo_agent.py", server, tmp_path, *arguments))
            server.wait_for_workers(worker_id)
            return worker

        yield start
