"""Voice agents with VoiceGateway's own package, unchanged, and the six rules of its contract."""

import concurrent.futures
import secrets
import socket
import time

import pytest

import voicegateway
from harness import running_server, wait_until
from streams import EventStream
from voices import beat_of, bearer, roster, running_voice_agent, send_beat

TTL_S = 20
SHORT_TTL_S = 3
FIRST_BEATS = 16
ROUNDS = 10
HOUR_S = 3600
SETTINGS = {"REVEILLE_FLEET_VOICEGATEWAY_TTL_SECONDS": str(TTL_S)}


@pytest.fixture(scope="module")
def server(binary, tmp_path_factory):
    with running_server(binary, tmp_path_factory.mktemp("voices"), SETTINGS) as server:
        yield server


class Tenant:
    """A tenant of its own for each test, with a key for its agents and one to look."""

    def __init__(self, server, name):
        self.name = name
        self.ingest = server.create_key(name, "ingest")
        self.read = server.create_key(name, "read")


@pytest.fixture
def tenant(server):
    return Tenant(server, "own-" + secrets.token_hex(4))


@pytest.fixture
def other(server):
    return Tenant(server, "other-" + secrets.token_hex(4))


def test_a_stock_agent_appears_with_what_it_sent_and_in_its_tenant_only(server, tenant, other, tmp_path):
    arguments = ("--name", "reception", "--project", "mahimai-realty")
    variables = {"VOICEGW_REGION": "iad"}
    with running_voice_agent(server, tmp_path, tenant.ingest, "voice-1", *arguments, variables=variables) as agent:
        row = wait_until("the agent", lambda: roster(server, tenant.read).get("voice-1"))
        assert (row["agent_name"], row["project"], row["region"]) == ("reception", "mahimai-realty", "iad")
        assert (row["version"], row["host"]) == (voicegateway.__version__, socket.gethostname())
        assert (row["status"], row["active_sessions"]) == ("idle", 0)
        assert row["memory_rss_bytes"] > 0 and row["memory_total_bytes"] > row["memory_rss_bytes"]
        assert row["memory_pct"] == round(row["memory_rss_bytes"] / row["memory_total_bytes"] * 100, 1)
        assert abs(row["last_seen"] - time.time()) < HOUR_S / 2
        assert 0 <= row["last_seen"] - row["started_at"] < HOUR_S / 2
        assert roster(server, other.read) == {}
        assert roster(server, server.key).keys() >= {"voice-1"}
        assert agent.process.poll() is None


def test_an_agent_is_busy_for_as_long_as_a_call_lasts(server, tenant, tmp_path):
    def stands_at(status, sessions):
        row = roster(server, tenant.read).get("voice-1", {})
        return (row.get("status"), row.get("active_sessions")) == (status, sessions)

    with running_voice_agent(server, tmp_path, tenant.ingest, "voice-1", "--interval-s", "0.5") as agent:
        wait_until("idle", lambda: stands_at("idle", 0))
        agent.tell("open")
        wait_until("busy", lambda: stands_at("busy", 1))
        agent.tell("open")
        wait_until("busy with two", lambda: stands_at("busy", 2))
        agent.tell("close")
        agent.tell("close")
        wait_until("idle again", lambda: stands_at("idle", 0))


@pytest.mark.slow
def test_a_killed_agent_is_offline_after_its_ttl_and_the_console_hears_of_it(server, tenant, other, tmp_path):
    """With the package's own rhythm: a beat every 15 s, of which the TTL here has room for one."""
    with (
        EventStream(server, "/openorca/events", bearer(tenant.read)) as console,
        EventStream(server, "/openorca/events", bearer(other.read)) as stranger,
        running_voice_agent(server, tmp_path, tenant.ingest, "voice-1") as agent,
    ):
        wait_until("the agent", lambda: "voice-1" in roster(server, tenant.read))
        agent.tell("open")
        busy = console.wait_for("busy", lambda frame: console_status(frame) == "active", seconds=TTL_S + 10)
        assert busy.data["agent"]["activeSessions"] == 1
        last_seen = roster(server, tenant.read)["voice-1"]["last_seen"]
        agent.kill()

        heard = len(console.frames)
        gone = console.wait_for("offline", lambda frame: console_status(frame) == "offline", TTL_S + 10, heard)
        assert time.time() - last_seen > TTL_S / 2, "it was given up long before its TTL"
        assert (gone.data["agent"]["activeSessions"], gone.data["agent"]["activityLevel"]) == (0, 0)
        row = roster(server, tenant.read)["voice-1"]
        assert (row["status"], row["active_sessions"], row["last_seen"]) == ("offline", 0, last_seen)
        snapshot = server.exchange("GET", "/openorca/snapshot", headers=bearer(tenant.read)).json()
        (shown,) = snapshot["agents"]
        assert (shown["status"], shown["activeSessions"]) == ("offline", 0)
        assert snapshot["fleetHealth"]["offlineAgents"] == 1
        assert all("voice-1" not in frame.text for frame in stranger.frames)


def console_status(frame):
    """How an `agent.updated` shows our one agent."""
    is_ours = frame.data["type"] == "agent.updated" and frame.data["agent"]["name"] == "reception"
    return is_ours and frame.data["agent"]["status"]


def test_the_tenant_is_the_keys_whatever_else_is_said(server, tenant, other):
    body = beat_of("worker-host-1", tenant_id=other.name, tenant=other.name)
    headers = bearer(tenant.ingest) | {"X-Tenant-ID": other.name}
    answer = server.exchange("POST", f"/v1/agents/heartbeat?tenant={other.name}", body, headers)

    assert answer.status in (202, 403), answer
    assert send_beat(server, tenant.ingest, body).status == 202
    assert roster(server, tenant.read).keys() == {"worker-host-1"}
    assert roster(server, other.read) == {}


def test_an_agent_is_its_tenant_and_its_id_not_its_name(server, tenant, other):
    for key, agent_id in [(tenant.ingest, "w1"), (tenant.ingest, "w2"), (other.ingest, "w1")]:
        assert send_beat(server, key, beat_of(agent_id, agent_name="shared", region=key[-6:])).status == 202
    assert send_beat(server, tenant.ingest, beat_of("w1", agent_name="renamed", region="iad")).status == 202

    assert {row["agent_name"] for row in roster(server, tenant.read).values()} == {"renamed", "shared"}
    assert [row["region"] for row in roster(server, other.read).values()] == [other.ingest[-6:]]
    snapshot = server.exchange("GET", "/openorca/snapshot", headers=bearer(tenant.read)).json()
    assert len({agent["id"] for agent in snapshot["agents"]}) == 2


@pytest.mark.parametrize("skew_s", [HOUR_S, -HOUR_S])
def test_the_time_of_a_beat_is_the_servers(server, tenant, skew_s):
    assert send_beat(server, tenant.ingest, beat_of("skewed", ts=time.time() + skew_s)).status == 202

    row = roster(server, tenant.read)["skewed"]
    assert row["status"] == "idle"
    assert abs(row["last_seen"] - time.time()) < HOUR_S / 2


def test_concurrent_first_beats_make_one_agent(server, tenant):
    with concurrent.futures.ThreadPoolExecutor(max_workers=FIRST_BEATS) as pool:
        for number in range(ROUNDS):
            beat = beat_of(f"first-{number}")
            answers = list(pool.map(lambda _, beat=beat: send_beat(server, tenant.ingest, beat), range(FIRST_BEATS)))
            assert [answer.status for answer in answers] == [202] * FIRST_BEATS
    assert roster(server, tenant.read).keys() == {f"first-{number}" for number in range(ROUNDS)}
    assert send_beat(server, tenant.ingest, beat_of("first-0", status="busy", active_sessions=1)).status == 202
    assert roster(server, tenant.read)["first-0"]["status"] == "busy"


def test_a_ttl_without_beats_means_offline_and_no_sessions(binary, tmp_path):
    settings = {"REVEILLE_FLEET_VOICEGATEWAY_TTL_SECONDS": str(SHORT_TTL_S)}
    with running_server(binary, tmp_path, settings) as server:
        key = server.create_key("quiet", "ingest", "read")
        busy = beat_of("quiet", status="busy", active_sessions=3)
        assert send_beat(server, key, busy).status == 202
        row = roster(server, key)["quiet"]
        assert (row["status"], row["active_sessions"]) == ("busy", 3)

        wait_until("offline", lambda: roster(server, key)["quiet"]["status"] == "offline")
        row = roster(server, key)["quiet"]
        assert row["active_sessions"] == 0
        assert time.time() - row["last_seen"] > SHORT_TTL_S / 2
        assert send_beat(server, key, busy).status == 202
        row = roster(server, key)["quiet"]
        assert (row["status"], row["active_sessions"]) == ("busy", 3)


@pytest.mark.parametrize("status", ["<b>on fire</b>", "BUSY", "", "online", None, 7])
def test_a_status_out_of_the_vocabulary_is_refused_and_changes_nothing(server, tenant, status):
    assert send_beat(server, tenant.ingest, beat_of("worded")).status == 202

    answer = send_beat(server, tenant.ingest, beat_of("worded", status=status, active_sessions=5))

    assert answer.status == 422, answer
    assert "status" in answer.text and "on fire" not in answer.text
    row = roster(server, tenant.read)["worded"]
    assert (row["status"], row["active_sessions"]) == ("idle", 0)


@pytest.mark.parametrize(
    ("key", "expected"),
    [("read", 403), ("none", 401), ("wrong", 401)],
)
def test_a_beat_needs_a_key_for_beats(server, tenant, key, expected):
    headers = {"read": bearer(tenant.read), "none": {}, "wrong": bearer("vk_" + "A" * 32)}[key]

    answer = server.exchange("POST", "/v1/agents/heartbeat", beat_of("w"), headers)

    assert answer.status == expected, answer
    assert isinstance(answer.json()["detail"], str)
    assert roster(server, tenant.read) == {}
