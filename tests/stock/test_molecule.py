"""Workspaces as Molecule's own client runs them: they register, beat, delegate, are lost and found again."""

import contextlib
import time

import pytest

from a2a_agent import Agent, agent_card_of
from harness import wait_until
from molecule_client import AWAY_MAX, WAKE_TEXT, Intervals, Workspace
from molecule_tools import DelegationRefused, Tools
from rig import choose_ports, ending_server
from streams import WebSocket

TENANT = "molecules"
TTL_S = 3
RUNGS = ["pending", "dispatched", "received", "in_progress", "completed"]
INTERVALS = Intervals(beat=0.4, call_max=5, message_max=10, cooldown=60)
TOKEN_LEN = 43
HOT_PAUSE_S = 0.05


@pytest.fixture
def server(binary, tmp_path):
    settings = {"REVEILLE_A2A_ALLOW": "loopback", "REVEILLE_FLEET_MOLECULE_TTL_SECONDS": str(TTL_S)}
    with ending_server(binary, tmp_path) as server:
        server.settings = settings
        choose_ports(server)
        server.start()
        yield server


@pytest.fixture
def keys(server):
    """What a tenant hands out: one key for its workspaces, one for those who look."""
    return {"beats": server.create_key(TENANT, "ingest", "write"), "looks": server.create_key(TENANT, "read")}


@pytest.fixture
def start(server, keys, tmp_path):
    """Starts an agent and its workspace, which has the tenant's key to begin with."""
    with contextlib.ExitStack() as running:

        def start(name, delay_s=0.0):
            agent = running.enter_context(Agent(name, delay_s))
            return agent, running.enter_context(new_workspace(server, keys, tmp_path, name, agent.url))

        yield start


def new_workspace(server, keys, tmp_path, name, url):
    directory = tmp_path / name
    directory.mkdir()
    card = agent_card_of(name, url)
    workspace = Workspace(server.http_url, url, directory, agent_card=card, intervals=INTERVALS)
    workspace.save_token(keys["beats"])
    return workspace


@pytest.fixture
def canvas(server, keys):
    with open_canvas(server, keys) as canvas:
        yield canvas


def open_canvas(server, keys):
    return WebSocket(server, "/ws", bearer(keys["looks"]))


def bearer(secret):
    return {"Authorization": f"Bearer {secret}"}


def told_of(canvas, delegation_id, event="DELEGATION_STATUS"):
    """What a canvas heard about one delegation so far."""
    frames = [frame.data for frame in canvas.frames]
    about = [frame for frame in frames if frame["payload"].get("delegation_id") == delegation_id]
    return [frame for frame in about if frame["event"] == event]


def wait_for_event(canvas, event, workspace, seconds=20, after=0):
    def is_meant(frame):
        return (frame.data["event"], frame.data["workspace_id"]) == (event, workspace.id)

    return canvas.wait_for(f"{event} of {workspace.id}", is_meant, seconds, after).data


def ended(workspace, delegation_id, seconds=30):
    """The one row of a delegation once it has ended."""

    def look():
        # The server may be away just now.
        with contextlib.suppress(OSError):
            path = f"/workspaces/{workspace.id}/delegations"
            status, rows = workspace.platform.call("GET", path, headers=workspace.auth())
            assert status in (200, 503), (status, rows)
            rows = [row for row in rows if row["delegation_id"] == delegation_id] if status == 200 else []
            assert len(rows) <= 1, rows
            return rows and rows[0]["status"] in ("completed", "failed") and rows[0]

    return wait_until(f"the end of {delegation_id}", look, seconds)


def status_of(server, keys, workspace):
    return server.exchange("GET", f"/workspaces/{workspace.id}", headers=bearer(keys["looks"])).json()["status"]


def test_a_token_is_given_once_and_counts_from_then_on(server, keys, start):
    _, workspace = start("a")
    (first,) = workspace.platform.calls("POST", "/registry/register")
    assert (first.status, first.answer["status"]) == (200, "registered")
    assert workspace.token() == first.answer["auth_token"]
    assert len(workspace.token()) == TOKEN_LEN

    again = workspace.restarted()
    assert again.register() == 200
    assert "auth_token" not in again.platform.exchanges[-1].answer

    body = {"id": workspace.id, "url": workspace.agent_url, "agent_card": workspace.agent_card}
    stranger = server.create_key("strangers", "ingest", "write")
    for headers, expected in [({}, 401), (bearer("x" * TOKEN_LEN), 401), (bearer(stranger), 404)]:
        answer = server.exchange("POST", "/registry/register", body, headers)
        assert answer.status == expected, answer
        assert "auth_token" not in answer.text
    seen = server.exchange("GET", f"/workspaces/{workspace.id}", headers=bearer(keys["looks"])).json()
    assert (seen["status"], seen["name"], seen["agent_card"]) == ("online", "a", workspace.agent_card)


def test_a_delegation_climbs_every_rung_and_its_result_reaches_the_agent(start, canvas):
    agent_a, a = start("a")
    agent_b, b = start("b")

    delegation = Tools(a).delegate(b.id, "water the plants")

    wait_for_event(canvas, "DELEGATION_COMPLETE", a)
    statuses = told_of(canvas, delegation)
    assert [frame["payload"]["status"] for frame in statuses] == RUNGS
    assert {frame["workspace_id"] for frame in statuses} == {a.id}
    assert {frame["payload"]["target_id"] for frame in statuses} == {b.id}
    (complete,) = told_of(canvas, delegation, "DELEGATION_COMPLETE")
    assert complete["payload"]["target_id"] == b.id
    assert complete["payload"]["response_preview"] == "b: water the plants"
    assert agent_b.texts() == ["water the plants"]

    # The heartbeat loop finds it by itself: a line in the file, a word to the agent, a word to whoever watches.
    message = wait_for_event(canvas, "AGENT_MESSAGE", a)
    assert message["payload"]["message"].startswith("Delegation completed: ")
    (line,) = a.results()
    assert (line["delegation_id"], line["status"], line["target_id"]) == (delegation, "completed", b.id)
    assert line["response_preview"] == "b: water the plants"
    assert agent_a.texts() == [WAKE_TEXT]
    assert a.warnings == b.warnings == []


def test_an_idempotency_key_makes_one_delegation(start):
    _, a = start("a")
    agent_b, b = start("b")
    delegation = Tools(a).delegate(b.id, "once", idempotency_key="k")

    with pytest.raises(DelegationRefused) as refusal:
        Tools(a).delegate(b.id, "once", idempotency_key="k")

    status, answer = refusal.value.args
    assert (status, answer["delegation_id"], answer["idempotent_hit"]) == (200, delegation, True)
    assert ended(a, delegation)["status"] == "completed"
    assert agent_b.texts() == ["once"]


def test_a_delegation_that_fails_says_so(start, canvas):
    _, a = start("a")
    agent_b, b = start("b")
    agent_b.error = "I would rather not"

    delegation = Tools(a).delegate(b.id, "mop the floor")

    failed = wait_for_event(canvas, "DELEGATION_FAILED", a)["payload"]
    assert (failed["delegation_id"], failed["target_id"]) == (delegation, b.id)
    assert "I would rather not" in failed["error"]
    assert [frame["payload"]["status"] for frame in told_of(canvas, delegation)][-1] == "failed"
    assert told_of(canvas, delegation, "DELEGATION_COMPLETE") == []
    message = wait_for_event(canvas, "AGENT_MESSAGE", a)
    assert message["payload"]["message"].startswith("Delegation failed: ")
    (line,) = a.results()
    assert (line["delegation_id"], line["status"]) == (delegation, "failed")
    assert "I would rather not" in line["error"]


def test_a_delegation_outlives_a_killed_server_and_ends_once(server, keys, start):
    _, a = start("a")
    agent_b, b = start("b", delay_s=3)
    delegation = Tools(a).delegate(b.id, "take your time")
    wait_until("the task at its target", agent_b.texts)

    server.kill()
    server.start()

    with open_canvas(server, keys) as canvas:
        row = ended(a, delegation)
        assert (row["status"], row["response_preview"]) == ("completed", "b: take your time")
        wait_for_event(canvas, "AGENT_MESSAGE", a)
        # Nothing comes after the end: not a second end, and no late rung.
        time.sleep(agent_b.delay_s + 1)
        assert ended(a, delegation) == row
        ends = told_of(canvas, delegation, "DELEGATION_COMPLETE")
    events = server.exchange("GET", f"/events/{a.id}", headers=bearer(keys["looks"])).json()
    stored = [event for event in events if event["payload"].get("delegation_id") == delegation]
    names = [event["event_type"] for event in stored]
    assert names.count("DELEGATION_COMPLETE") == 1 == len(ends), names
    assert "DELEGATION_FAILED" not in names
    # A target that was asked twice can tell that it was.
    ids = {request["params"]["message"]["messageId"] for request in agent_b.requests}
    assert len(ids) == 1, agent_b.requests
    assert len([line for line in a.results() if line["delegation_id"] == delegation]) == 1


def test_a_target_that_is_away_gets_its_task_when_it_comes_back(server, keys, start, canvas, tmp_path):
    _, a = start("a")
    with Agent("b") as first, new_workspace(server, keys, tmp_path, "b", first.url) as b:
        pass
    wait_for_event(canvas, "WORKSPACE_OFFLINE", b)

    delegation = Tools(a).delegate(b.id, "when you are back")
    time.sleep(1)
    assert [frame["payload"]["status"] for frame in told_of(canvas, delegation)][-1] == "pending"
    with Agent("b") as second:
        # Another machine, the same files.
        moved = Workspace(server.http_url, second.url, b.directory, workspace_id=b.id, intervals=INTERVALS)
        with moved:
            assert ended(a, delegation)["response_preview"] == "b: when you are back"
            wait_for_event(canvas, "DELEGATION_COMPLETE", a)
            assert second.texts() == ["when you are back"]
    assert [frame["payload"]["status"] for frame in told_of(canvas, delegation)][-4:] == RUNGS[1:]


def test_an_agent_that_does_not_listen_for_a_while_gets_its_task_later(start, canvas):
    """Its beats go on all the time: to the registry it looks alive."""
    _, a = start("a")
    agent_b, b = start("b")
    agent_b.status = 503
    delegation = Tools(a).delegate(b.id, "not now?")
    wait_until("a first try", agent_b.texts)

    agent_b.status = 200

    assert ended(a, delegation)["status"] == "completed"
    wait_for_event(canvas, "DELEGATION_COMPLETE", a)
    assert len(told_of(canvas, delegation, "DELEGATION_COMPLETE")) == 1


def test_a_workspace_goes_offline_when_its_beats_end_and_comes_back_with_the_next(server, keys, start, canvas):
    _, b = start("b")
    wait_for_event(canvas, "WORKSPACE_ONLINE", b)
    assert status_of(server, keys, b) == "online"

    b.stop()
    stopped = time.monotonic()
    wait_for_event(canvas, "WORKSPACE_OFFLINE", b)
    assert time.monotonic() - stopped > TTL_S / 2, "it was given up long before its TTL"
    assert status_of(server, keys, b) == "offline"

    heard = len(canvas.frames)
    again = b.restarted()
    again.beat()
    wait_for_event(canvas, "WORKSPACE_ONLINE", b, after=heard)
    assert status_of(server, keys, b) == "online"
    # A second death is seen like the first.
    heard = len(canvas.frames)
    wait_for_event(canvas, "WORKSPACE_OFFLINE", b, after=heard)


def test_a_sick_workspace_is_degraded_until_it_is_well(server, keys, start, canvas):
    _, b = start("b")
    b.stop()
    b.record_request(error="no model")
    b.beat()
    degraded = wait_for_event(canvas, "WORKSPACE_DEGRADED", b)
    assert (degraded["payload"]["error_rate"], degraded["payload"]["sample_error"]) == (1.0, "no model")
    assert status_of(server, keys, b) == "degraded"
    heard = len(canvas.frames)
    b.beat()
    wait_for_event(canvas, "WORKSPACE_ONLINE", b, after=heard)
    assert status_of(server, keys, b) == "online"


def test_a_retired_workspace_points_to_its_successor(server, keys, start, canvas):
    _, a = start("a")
    _, old = start("old")
    agent_new, new = start("new")
    path = f"/workspaces/{old.id}"

    answer = server.exchange("DELETE", f"{path}?forwarded_to={new.id}", headers=bearer(keys["beats"]))
    assert answer.status == 200, answer
    assert answer.json() == {"status": "removed", "cascade_deleted": 0}
    assert wait_for_event(canvas, "WORKSPACE_REMOVED", old)["payload"]["forwarded_to"] == new.id

    looked_up = server.exchange("GET", path, headers=bearer(keys["looks"]))
    assert (looked_up.status, looked_up.headers["location"]) == (301, f"/workspaces/{new.id}")
    assert (looked_up.json()["forwarded_to"], looked_up.json()["url"]) == (new.id, new.agent_url)
    headers = a.auth() | {"X-Workspace-ID": a.id}
    discovered = server.exchange("GET", f"/registry/discover/{old.id}", headers=headers)
    assert (discovered.status, discovered.headers["location"]) == (301, f"/registry/discover/{new.id}")
    status, told = a.send_message("hello?", old.id)
    assert (status, told["forwarded_to"], told["url"]) == (410, new.id, new.agent_url)
    # Its own client goes on beating and does not look at the answers: it must not come back by that.
    beat = wait_until("a beat of the retired", lambda: last_beat(old, 410))
    assert beat.answer["forwarded_to"] == new.id
    assert old.restarted().register() in (401, 410)
    about_it = [frame.data["event"] for frame in canvas.frames if frame.data["workspace_id"] == old.id]
    assert "WORKSPACE_ONLINE" not in about_it[about_it.index("WORKSPACE_REMOVED") :]
    # Whoever delegates to the old one is served by the new one.
    delegation = Tools(a).delegate(old.id, "whoever you are")
    assert ended(a, delegation)["target_id"] == new.id
    assert agent_new.texts() == ["whoever you are"]

    assert server.exchange("DELETE", f"/workspaces/{new.id}", headers=bearer(keys["beats"])).status == 200
    gone = server.exchange("GET", f"/workspaces/{new.id}", headers=bearer(keys["looks"]))
    assert gone.status == 410, gone
    assert gone.json()["last_event"]["event_type"] == "WORKSPACE_REMOVED"


def last_beat(workspace, status):
    beats = workspace.platform.calls("POST", "/registry/heartbeat")
    return beats and beats[-1].status == status and beats[-1]


def test_a_hot_loop_is_shed_and_let_in_again_when_it_cools_down(server, start):
    """Nineteen connections a second, as the client makes once the server was away for long."""
    _, hot = start("hot")
    _, other = start("other")
    hot.stop()
    beat = {"workspace_id": hot.id, "error_rate": 0, "active_tasks": 0, "current_task": "", "uptime_seconds": 1}
    answers, deadline = [], time.monotonic() + 20
    while not any(answer.status == 429 for answer in answers[:-10]) and time.monotonic() < deadline:
        answers.append(server.exchange("POST", "/registry/heartbeat", beat, hot.auth()))
        time.sleep(HOT_PAUSE_S)

    shed = [answer for answer in answers if answer.status == 429]
    assert shed and {answer.status for answer in answers} == {200, 429}, [answer.status for answer in answers]
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in shed)
    assert len(answers) - len(shed) > len(answers) / 4, "most of a hot loop is shed, not all of it"
    time.sleep(int(shed[-1].headers["retry-after"]))
    assert server.exchange("POST", "/registry/heartbeat", beat, hot.auth()).status == 200
    assert {call.status for call in other.platform.calls("POST", "/registry/heartbeat")} == {200}


def test_a_client_in_its_hot_loop_finds_the_server_again(server, keys, start):
    _, workspace = start("a")
    server.kill()
    wait_until("the hot loop", lambda: workspace.away > AWAY_MAX + 5)

    server.start()

    wait_until("a beat that was taken", lambda: workspace.away == 0 and last_beat(workspace, 200))
    assert status_of(server, keys, workspace) == "online"
