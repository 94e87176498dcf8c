"""Attacks that once stopped the server, each by a handful of attackers for a few seconds.

An honest tenant's jobs are taken meanwhile, the admin listener answers, and memory stays bounded.
"""

import contextlib
import json
import socket
import threading
import time

import pytest

ATTACK_S = 5
ATTACKERS = 4
# Three times as many as the server has places.
SOCKETS_MAX = 600


def nested(levels, macro="all", body="true"):
    expression = body
    for level in range(levels):
        expression = f"[0,0,0,0,0,0,0,0].{macro}(x{level}, {expression})"
    return expression


def policy_with(condition):
    return json.dumps({"rules": [{"id": "costly", "when": condition, "decision": "allow"}]})


def attack(one_call):
    """So many threads that call again and again; whatever they are answered, nobody may hang."""
    end = time.monotonic() + ATTACK_S
    statuses = []

    def calls():
        while time.monotonic() < end:
            statuses.append(one_call())

    threads = [threading.Thread(target=calls) for _ in range(ATTACKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=ATTACK_S * 6)
        assert not thread.is_alive(), "a call was never answered"
    return statuses


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(policy_with(nested(12)), id="nested all"),
        pytest.param(policy_with(f"size({nested(7, 'map', '1')}) > 0"), id="nested map"),
        pytest.param(
            policy_with("job.labels.all(a, job.labels.all(b, job.labels.all(c, job.labels.all(d, a != b + c + d))))"),
            id="as many as the job has labels",
        ),
        pytest.param(
            json.dumps({
                "input_policy": {"enabled": True},
                "input_rules": [
                    {"id": f"r{rule}", "match": {"content_patterns": [rf"\w{{40}}x{rule}{n}" for n in range(50)]}, "decision": "deny"}
                    for rule in range(8)
                ],
            }),
            id="patterns",
        ),
    ],
)
def test_a_read_key_replays_a_policy_that_costs_everything(server, bystander, policy):
    labels = {f"l{n}": "x" * 60 for n in range(48)}
    for _ in range(20):
        assert server.call("POST", "/api/v1/jobs", {"topic": "job.labelled", "context": {}, "labels": labels})[0] == 200
    key = server.create_key("attackers", "read")
    with bystander.going_on():
        statuses = attack(lambda: server.call("POST", "/api/v1/policy/replay", {"policy": policy, "since": "1h"}, key)[0])
    assert set(statuses) <= {200, 400, 422, 429}, set(statuses)
    assert statuses.count(200) == 0 or "labels" in policy, set(statuses)


def test_a_workflow_whose_condition_costs_everything_fails_and_can_be_cancelled(server, bystander):
    key = server.create_key("attackers", "read", "write")
    refused, answer = server.call(
        "POST",
        "/api/v1/workflows",
        {"id": "w", "name": "w", "steps": {"a": {"type": "condition", "condition": nested(12)}}},
        key,
    )
    assert refused == 400 and "too expensive" in answer["error"], answer
    tags = "input.list"
    condition = f"{tags}.all(a, {tags}.all(b, {tags}.all(c, {tags}.all(d, a + b + c + d >= 0))))"
    steps = {
        "wait": {"type": "delay", "delay_sec": 1},
        "costly": {"type": "condition", "condition": condition, "depends_on": ["wait"]},
    }
    assert server.call("POST", "/api/v1/workflows", {"id": "w", "name": "w", "steps": steps}, key)[0] == 201
    started = []
    with bystander.going_on():
        for _ in range(8):
            status, run = server.call("POST", "/api/v1/workflows/w/runs", {"input": {"list": list(range(200))}}, key)
            assert status == 200, run
            started.append(run["run_id"])
        time.sleep(ATTACK_S)
        for run_id in started:
            status, run = server.call("GET", f"/api/v1/workflow-runs/{run_id}", key=key)
            assert status == 200 and run["status"] == "failed", run


def test_a_schema_that_asks_a_billion_questions_is_refused(server, bystander):
    key = server.create_key("attackers", "read", "write")
    definitions = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(26)} | {"d26": {}}
    schema = {"$ref": "#/$defs/d0", "$defs": definitions}
    document = {"id": "w", "name": "w", "steps": {"a": {"topic": "job.a"}}, "input_schema": schema}
    with bystander.going_on():
        statuses = attack(lambda: server.call("POST", "/api/v1/workflows", document, key)[0])
    assert set(statuses) == {400}, set(statuses)


def test_clients_that_ask_and_never_read(server, bystander):
    requests = b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 4000
    with bystander.going_on(), contextlib.ExitStack() as sockets:
        for _ in range(ATTACKERS * 2):
            greedy = sockets.enter_context(socket.create_connection(server.address("http")))
            greedy.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                greedy.send(requests)
        time.sleep(ATTACK_S)


def test_clients_that_send_a_byte_now_and_then(binary, server, bystander):
    head = b"POST /ui/sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"
    with bystander.going_on(), contextlib.ExitStack() as sockets:
        slow = []
        end = time.monotonic() + ATTACK_S
        while time.monotonic() < end:
            if len(slow) >= SOCKETS_MAX:
                time.sleep(0.05)
                continue
            with contextlib.suppress(OSError):
                drip = sockets.enter_context(socket.create_connection(server.address("http"), timeout=2))
                drip.send(head)
                slow.append(drip)
            for drip in slow[-50:]:
                with contextlib.suppress(OSError):
                    drip.send(b"x")
