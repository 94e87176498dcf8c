"""Agents and workspaces written in Rust with our own SDK, against the running server."""

import os
import pathlib
import subprocess
import uuid

import pytest

from harness import running_server, wait_until

TENANT = "rust"
# The examples are at rest for twenty seconds, then busy for ten.
BUSY_S_MAX = 40


@pytest.fixture
def server(binary, tmp_path):
    with running_server(binary, tmp_path, {"REVEILLE_A2A_ALLOW": "loopback"}) as server:
        yield server


@pytest.fixture
def start(binary, tmp_path):
    """Starts one of the SDK's examples, which ends with the test."""
    started = []

    def start(example, *arguments, **variables):
        path = pathlib.Path(binary).parent / "examples" / example
        assert path.is_file(), f"no example at {path}: cargo build --release -p reveille-worker --examples"
        with (tmp_path / f"{example}.log").open("wb") as log:
            process = subprocess.Popen(
                [str(path), *arguments], env={**os.environ, **variables}, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_an_agent_is_listed_at_its_first_beat_and_goes_busy(server, start):
    beats, looks = server.create_key(TENANT, "ingest"), server.create_key(TENANT, "read")
    start("agent", VOICEGW_COLLECTOR_URL=server.http_url, VOICEGW_API_KEY=beats, VOICEGW_AGENT_ID="rusty")

    def agent(status):
        listed = server.call("GET", "/v1/agents", key=looks)[1]["workers"]
        return next((one for one in listed if one["agent_id"] == "rusty" and one["status"] == status), None)

    idle = wait_until("the agent is idle", lambda: agent("idle"))
    assert (idle["agent_name"], idle["active_sessions"]) == ("example", 0)
    busy = wait_until("the agent is busy", lambda: agent("busy"), BUSY_S_MAX)
    assert busy["active_sessions"] == 1


def test_a_workspace_registers_keeps_its_token_and_tells_its_task(server, start, tmp_path):
    beats, looks = server.create_key(TENANT, "ingest", "write"), server.create_key(TENANT, "read")
    configs = tmp_path / "configs"
    configs.mkdir()
    token = configs / ".auth_token"
    token.write_text(beats)
    name = str(uuid.uuid4())
    results = str(tmp_path / "results.jsonl")
    start("workspace", server.http_url, name, "http://127.0.0.1:9", CONFIGS_DIR=str(configs), DELEGATION_RESULTS_FILE=results)

    def workspace(question):
        status, listed = server.call("GET", "/workspaces", key=looks)
        assert status == 200, listed
        return next((one for one in listed if one["id"] == name and question(one)), None)

    wait_until("the workspace is online", lambda: workspace(lambda one: one["status"] == "online"))
    assert wait_until("the token is kept", lambda: token.read_text() != beats)
    assert token.stat().st_mode & 0o777 == 0o600
    wait_until("its task is told", lambda: workspace(lambda one: one["current_task"] == "counting to ten"), BUSY_S_MAX)
