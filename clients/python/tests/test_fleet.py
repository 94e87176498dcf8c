"""Workers and presence, by both clients."""

import pytest
from harness import running_server, wait_until

from reveille import BadRequest, NotFound, Retry
from reveille.models import PoolList


def test_the_fleet_is_listed_and_a_worker_drained_and_brought_back(client):
    worker = client.workers.get("echo-1")
    assert (worker.worker_id, worker.contract, worker.drained) == ("echo-1", "cap", False)
    assert "job.echo" in worker.topics
    assert "echo-1" in {worker.worker_id for worker in client.workers.list(contract="cap", page_size=1)}

    drained = client.workers.drain("echo-1", timeout_seconds=60)
    try:
        assert (drained.name, drained.drain_timeout_seconds) == ("echo-1", 60)
        assert client.workers.get("echo-1").drained
    finally:
        assert client.workers.undrain("echo-1").was_drained
    assert not client.workers.undrain("echo-1").was_drained
    assert not client.workers.get("echo-1").drained


def test_what_has_no_method_of_its_own_can_be_called(client):
    pools = client.call("GET", "/api/v1/pools", PoolList)
    assert pools.items[0].workers >= 1
    assert client.call("GET", "/api/v1/pools", object)["items"][0]["name"] == pools.items[0].name


def test_one_beat_makes_an_agent_known(client, topic):
    heard = client.presence.beat(agent_id=topic, agent_name="reception", status="busy", active_sessions=2)

    assert heard.next_beat_s > 0
    agent = client.workers.get(topic)
    assert (agent.contract, agent.agent_name, agent.active_jobs) == ("voicegateway", "reception", 2)


def test_of_many_beats_each_is_taken_or_refused_by_itself(client, topic):
    good, bad = {"agent_id": topic, "agent_name": "a"}, {"agent_id": "", "agent_name": "b"}

    taken = client.presence.beats([good, bad])

    assert (taken.accepted, [refused.index for refused in taken.rejected]) == (1, [1])
    assert client.workers.get(topic).agent_name == "a"


def test_an_operator_beats_for_the_tenant_that_it_named(connect, server, topic):
    named = connect(server.http_url, server.key, tenant="acme")

    assert named.presence.beat(agent_id=topic, agent_name="theirs").next_beat_s > 0

    assert named.workers.get(topic).tenant == "acme"
    with pytest.raises(NotFound):
        connect(server.http_url, server.create_key("default", "read")).workers.get(topic)
    with pytest.raises(BadRequest) as refused:
        named.presence.beat(agent_id="", agent_name="theirs")
    assert refused.value.field == "agent_id"


def test_a_registered_agent_is_there_until_it_leaves(client, topic):
    def seen():
        return client.workers.get(topic)

    with client.presence.register(agent_id=topic, agent_name="reception", region="iad") as member:
        assert (seen().status, seen().region) == ("online", "iad")
        member.update(status="busy", active_sessions=3)
        wait_until("the beat with its sessions", lambda: seen().active_jobs == 3)
        assert member.last_error is None
    assert (seen().status, seen().active_jobs) == ("offline", 0)


def test_a_beat_that_is_refused_is_told_at_once(client, topic):
    with pytest.raises(BadRequest) as refused, client.presence.register(agent_id="", agent_name=topic):
        pass
    assert (refused.value.status, refused.value.field) == (422, "agent_id")


def test_a_registered_agent_beats_by_itself_and_comes_back_with_the_server(connect, binary, tmp_path):
    with running_server(binary, tmp_path, {"REVEILLE_FLEET_VOICEGATEWAY_TTL_SECONDS": "3"}) as server:
        client = connect(server.http_url, server.key, retry=Retry(tries_max=1))
        with client.presence.register(agent_id="voice-1", agent_name="reception") as member:
            first = client.workers.get("voice-1").last_heartbeat
            wait_until("another beat", lambda: client.workers.get("voice-1").last_heartbeat != first)

            server.kill()
            wait_until("a beat that is not heard", lambda: member.last_error)
            assert member.last_error.code == "unreachable"
            server.start()
            wait_until("a beat that is", lambda: member.last_error is None)
            assert client.workers.get("voice-1").online
