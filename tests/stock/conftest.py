"""Fixtures: a fresh server per test on ports of its own, and workers that end with the test."""

import contextlib
import os
import pathlib

import pytest

from browser import running_browser
from harness import running_server, running_worker
from pages import CAP_TTL_S, POLICY, Console


@pytest.fixture(scope="session")
def binary():
    path = pathlib.Path(os.environ.get("REVEILLE_BIN", "target/release/reveille")).resolve()
    assert path.is_file(), f"no server at {path}: build it, or name it in REVEILLE_BIN"
    return str(path)


@pytest.fixture
def server(binary, tmp_path):
    with running_server(binary, tmp_path) as server:
        yield server


@pytest.fixture
def start_worker(server, tmp_path):
    with contextlib.ExitStack() as workers:
        yield lambda script, *arguments: workers.enter_context(running_worker(script, server, tmp_path, *arguments))


@pytest.fixture
def start_agent(start_worker, server):
    """Starts a stock Agent and returns once the server knows it."""

    def start(worker_id, *arguments):
        agent = start_worker("echo_agent.py", "--worker-id", worker_id, *arguments)
        server.wait_for_workers(worker_id)
        return agent

    return start


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with running_browser(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture
def console(browser, binary, tmp_path):
    """The console of a server with a policy. Pictures go where `REVEILLE_SCREENSHOTS` says."""
    policy = tmp_path / "safety.yaml"
    policy.write_text(POLICY)
    settings = {"REVEILLE_FLEET_CAP_TTL_SECONDS": str(CAP_TTL_S)}
    folder = pathlib.Path(os.environ.get("REVEILLE_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    with running_server(binary, tmp_path, settings, flags=("--policy", str(policy))) as server:
        yield Console(browser, server, folder)
        browser.forget()
