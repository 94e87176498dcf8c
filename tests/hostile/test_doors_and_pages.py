"""Attacks that need no key at all, at the doors and at the console's pages, while an honest tenant goes on."""

import contextlib
import http.client
import json
import socket
import time

import pytest

from test_stopped_by_one_caller import ATTACK_S, attack

# Doors that ask for a key, also on loopback: until they have shown one, clients are strangers.
locked = pytest.mark.parametrize("settings", [{"REVEILLE_DOORS_REQUIRE_KEY": "true"}], ids=["locked"])
# Each of them once made the NATS door hold a whole message, 1 MiB.
STRANGERS_AT_ONCE = 40
FLOOD_BYTES = 1024 * 1024


def strangers_send(server, listener, first):
    """Sockets that say something large before they say who they are, again and again."""
    end = time.monotonic() + ATTACK_S
    with contextlib.ExitStack() as sockets:
        while time.monotonic() < end:
            for _ in range(STRANGERS_AT_ONCE):
                # Being cut off while one sends is what should happen.
                with contextlib.suppress(OSError):
                    stranger = sockets.enter_context(socket.create_connection(server.address(listener), timeout=2))
                    stranger.setblocking(False)
                    stranger.send(first)
                    stranger.send(b"x" * FLOOD_BYTES)
            time.sleep(0.1)


@locked
def test_strangers_make_the_nats_door_hold_large_messages(server, bystander):
    with bystander.going_on():
        strangers_send(server, "nats-door", b"PUB sys.heartbeat %d\r\n" % FLOOD_BYTES)


@locked
def test_strangers_make_the_resp_door_hold_large_values(server, bystander):
    with bystander.going_on():
        strangers_send(server, "resp-door", b"*3\r\n$3\r\nSET\r\n$5\r\nres:1\r\n$%d\r\n" % FLOOD_BYTES)


def test_pages_are_asked_for_without_end(server, bystander):
    """By people who are not signed in, each on one connection that stays open."""

    def one_visit():
        connection = http.client.HTTPConnection(*server.address("http"), timeout=10)
        with contextlib.closing(connection):
            for _ in range(100):
                connection.request("GET", "/ui/sign-in")
                response = connection.getresponse()
                response.read()
                if response.status != 200:
                    break
        return response.status

    with bystander.going_on():
        statuses = attack(one_visit)
    assert set(statuses) <= {200, 429}, set(statuses)


def test_a_dry_run_over_an_input_that_costs_everything(server, bystander):
    key = server.create_key("attackers", "read", "write")
    many = "input.list"
    condition = f"{many}.all(a, {many}.all(b, {many}.all(c, {many}.all(d, a + b + c + d >= 0))))"
    workflow = {"id": "w", "name": "w", "steps": {"a": {"topic": "job.a", "condition": condition}}}
    body = {"workflow": workflow, "input": {"list": list(range(200))}}
    answers = []

    def one_call():
        status, answer = server.call("POST", "/api/v1/workflows/w/dry-run", body, key)
        answers.append(json.dumps(answer))
        return status

    with bystander.going_on():
        statuses = attack(one_call)
    assert set(statuses) <= {200, 422, 429}, set(statuses)
    assert any("too expensive" in answer for answer in answers), answers[:1]


def test_runs_that_cost_everything_are_cancelled_after_a_restart(server, bystander):
    """They once stopped the server again at every start, and no call could end them."""
    key = server.create_key("attackers", "read", "write")
    many = "input.list"
    condition = f"{many}.all(a, {many}.all(b, {many}.all(c, {many}.all(d, a + b + c + d >= 0))))"
    steps = {
        "wait": {"type": "delay", "delay_sec": 3600},
        "costly": {"type": "condition", "condition": condition, "depends_on": ["wait"]},
    }
    assert server.call("POST", "/api/v1/workflows", {"id": "w", "name": "w", "steps": steps}, key)[0] == 201
    started = []
    for _ in range(8):
        status, run = server.call("POST", "/api/v1/workflows/w/runs", {"input": {"list": list(range(200))}}, key)
        assert status == 200, run
        started.append(run["run_id"])
    server.kill()
    server.start()
    with bystander.going_on():
        for run_id in started:
            status, answer = server.call("POST", f"/api/v1/workflow-runs/{run_id}/cancel", {}, key)
            assert status == 204, answer
        time.sleep(ATTACK_S / 5)
    for run_id in started:
        status, run = server.call("GET", f"/api/v1/workflow-runs/{run_id}", key=key)
        assert status == 200 and run["status"] == "cancelled", run
