"""Three tenants do what they like, with each other's ids in hand, and never see or touch what is not theirs."""

import json
import random

import pytest
import redis
from cap.pb.cordum.agent.v1 import buspacket_pb2, job_pb2

from dial import dial_nats, read_until
from harness import running_server, wait_until
from isolation_world import TOPIC, three_tenants
from streams import EventStream, Refused, WebSocket
from voices import bearer

SEEDS = [1, 2, 3, 5, 8, 13, 21, 34, 55, 89]
STEPS = 400
# Nobody goes offline by the way.
SETTINGS = {
    "REVEILLE_A2A_ALLOW": "loopback",
    "REVEILLE_FLEET_VOICEGATEWAY_TTL_SECONDS": "3600",
    "REVEILLE_FLEET_MOLECULE_TTL_SECONDS": "3600",
}
# Everything that can be read; {workspace}, {job} and {agent} are somebody's.
READS = [
    "/api/v1/jobs", "/api/v1/jobs?limit=1", "/api/v1/jobs/{job}", "/api/v1/jobs/{job}?wait=1ms",
    "/api/v1/jobs/{job}/explain", "/api/v1/workers", "/api/v1/workers?contract=molecule",
    "/api/v1/workers?cursor=voicegateway%20{tenant}%20shared-0", "/api/v1/workers/{agent}",
    "/api/v1/workers/{workspace}", "/api/v1/pools", "/api/v1/auth/keys", "/v1/agents", "/v1/api-keys",
    "/openorca/snapshot", "/openorca/runtime-info", "/workspaces", "/workspaces/{workspace}",
    "/workspaces/{workspace}/state", "/workspaces/{workspace}/delegations", "/registry/{workspace}/peers",
    "/registry/{workspace}/peers?q={tenant}", "/registry/discover/{workspace}", "/events", "/events/{workspace}",
    "/metrics", "/healthz", "/health", "/readyz", "/api/v1/openapi.json",
]  # fmt: skip
# Everything that changes something, aimed at somebody else: each must be refused.
ATTACKS = [
    ("POST", "/api/v1/jobs/{job}/cancel", {}),
    ("POST", "/api/v1/jobs", {"topic": TOPIC, "context": {}, "tenant_id": "{tenant}"}),
    ("POST", "/api/v1/workers/{agent}/drain", {}),
    ("POST", "/api/v1/workers/{workspace}/drain", {}),
    ("POST", "/api/v1/workers/{workspace}/undrain", {}),
    ("POST", "/api/v1/pools/default/drain", {}),
    ("POST", "/api/v1/auth/keys", {"name": "mine", "tenant": "{tenant}", "scopes": ["read"]}),
    ("DELETE", "/api/v1/auth/keys/{key}", None),
    ("POST", "/v1/api-keys", {"name": "mine", "tenant_id": "{tenant}", "scopes": ["read"]}),
    ("GET", "/v1/api-keys/{key}", None),
    ("DELETE", "/v1/api-keys/{key}", None),
    ("POST", "/openorca/interventions/resolve", {"interventionId": "{job}", "action": "deny"}),
    ("POST", "/registry/register", {"id": "{workspace}", "url": "http://localhost:9", "agent_card": {"name": "x"}}),
    ("POST", "/registry/heartbeat", {"workspace_id": "{workspace}", "current_task": "taken over"}),
    ("POST", "/registry/update-card", {"workspace_id": "{workspace}", "agent_card": {"name": "taken over"}}),
    ("POST", "/workspaces", {"name": "child", "parent_id": "{workspace}"}),
    ("PATCH", "/workspaces/{workspace}", {"name": "taken over"}),
    ("PATCH", "/workspaces/{own}", {"parent_id": "{workspace}"}),
    ("DELETE", "/workspaces/{workspace}", None),
    ("DELETE", "/workspaces/{workspace}?confirm=true&purge=true", None),
    ("DELETE", "/workspaces/{own}?forwarded_to={workspace}", None),
    ("POST", "/workspaces/{workspace}/tokens", {}),
    ("POST", "/workspaces/{workspace}/delegate", {"target_id": "{own}", "task": "intruding"}),
    ("POST", "/workspaces/{own}/delegate", {"target_id": "{workspace}", "task": "intruding"}),
    ("POST", "/workspaces/{own}/delegations/record", {"target_id": "{workspace}", "task": "x", "delegation_id": "d"}),
    ("POST", "/workspaces/{workspace}/delegations/{delegation}/update", {"status": "failed", "error": "intruding"}),
    ("POST", "/workspaces/{own}/delegations/{delegation}/update", {"status": "failed", "error": "intruding"}),
    ("POST", "/workspaces/{workspace}/notify", {"message": "intruding"}),
    ("POST", "/workspaces/{workspace}/activity", {"activity_type": "intruding"}),
    ("POST", "/workspaces/{workspace}/a2a", {"method": "message/send", "params": {"message": {"role": "user"}}}),
]


def test_tenants_neither_see_nor_touch_what_is_not_theirs(binary, tmp_path):
    """One server for all seeds: what one round leaves behind is what the next must not see."""
    with running_server(binary, tmp_path, SETTINGS) as server, three_tenants(server) as tenants:
        keys, used = listed_keys(server), set()
        for seed in SEEDS:
            dice = random.Random(seed)
            for _ in range(STEPS):
                step(dice, tenants, used)
            for tenant in tenants:
                assert_owns_what_it_made(tenant)
        assert listed_keys(server) == keys, "somebody made or revoked a key"
        for tenant in tenants:
            assert_heard_only_its_own(tenant, tenants)
        assert used == {*READS, *(f"{method} {path}" for method, path, _ in ATTACKS)}, "not everything was tried"


def listed_keys(server):
    status, answer = server.call("GET", "/api/v1/auth/keys")
    assert status == 200, answer
    return sorted((key["id"], key["tenant"], key["revokedAt"]) for key in answer["items"])


def step(dice, tenants, used):
    """Somebody does something, most often to or with what is somebody else's."""
    me, victim = dice.sample(tenants, 2)
    others = [tenant for tenant in tenants if tenant is not me]
    doings = [do, do, do, look, look, attack, attack, forge, sneak_into_a_stream]
    used.add(dice.choice(doings)(dice, me, victim, others))
    used.discard(None)


def do(dice, me, _victim, others):
    if len(me.workspaces) < 4 and dice.random() < 0.2:
        me.register(others)
    deed = dice.choice([me.beat, me.beat_many, me.beat_workspace, me.notify, me.delegate, me.submit, me.cancel])
    deed(dice, others=others)


def look(dice, me, victim, others):
    names = names_of(dice, me, victim)
    path = dice.choice(READS)
    answer = me.ask("GET", path.format(**names), headers=disguise(dice, me, victim), others=others)
    assert answer.status < 500 or answer.status == 503, answer
    return path


def attack(dice, me, victim, others):
    names = names_of(dice, me, victim)
    method, path, body = dice.choice(ATTACKS)
    if body is not None:
        body = filled(body, names)
    answer = me.ask(method, path.format(**names), body, disguise(dice, me, victim), others)
    assert 400 <= answer.status < 500, (method, path, answer)
    return f"{method} {path}"


def forge(dice, me, victim, others):
    """Its own beats, with another tenant's name in every place where one could stand."""
    headers = dice.choice([None, {"X-Tenant-ID": victim.name}])
    if dice.random() < 0.5:
        me.beat(dice, headers, others, tenant_id=victim.name)
    else:
        answer = me.beat_many(dice, headers, others, tenant_id=victim.name)
        assert answer.status == (403 if headers else 202), answer


def sneak_into_a_stream(dice, me, victim, others):
    workspace = dice.choice(list(victim.workspaces))
    way, path, headers = dice.choice([
        (EventStream, f"/openorca/events?tenant={victim.name}", {}),
        (EventStream, "/openorca/events", {"X-Tenant-ID": victim.name}),
        (EventStream, f"/api/v1/events?tenant={victim.name}", {}),
        (EventStream, "/api/v1/events", {"X-Tenant-ID": victim.name}),
        (EventStream, f"/workspaces/{workspace}/events/stream", {}),
        (WebSocket, "/ws", {"X-Tenant-ID": victim.name}),
        (WebSocket, "/ws", {"X-Workspace-ID": workspace}),
    ])  # fmt: skip
    with pytest.raises(Refused) as refusal, way(me.server, path, bearer(me.all) | headers):
        pass
    status, text = refusal.value.args
    assert 400 <= status < 500, (path, status, text)
    leaked = {secret for other in others for secret in other.secrets if secret in text}
    assert not leaked, f"{me.name} was told {leaked} by {path}"


def names_of(dice, me, victim):
    return {
        "tenant": victim.name,
        "workspace": dice.choice(list(victim.workspaces)),
        "job": dice.choice(list(victim.jobs) or ["none"]),
        "delegation": dice.choice(list(victim.delegations) or ["none"]),
        "agent": dice.choice(list(victim.agents) or ["none"]),
        "own": dice.choice(list(me.workspaces)),
        "key": dice.choice(victim.key_ids),
    }


def filled(body, names):
    """The body with somebody's names in it."""
    if isinstance(body, dict):
        return {name: filled(value, names) for name, value in body.items()}
    if isinstance(body, list):
        return [filled(value, names) for value in body]
    return body.format(**names) if isinstance(body, str) else body


def disguise(dice, me, victim):
    """Which of its own credentials, and perhaps a header that says it were somebody else."""
    own = dice.choice(list(me.workspaces))
    headers = dice.choice([{}, bearer(me.tokens[own]), {"X-API-Key": me.all}])
    claims = [{}, {"X-Tenant-ID": victim.name}, {"X-Workspace-ID": dice.choice(list(victim.workspaces))}]
    return headers | dice.choice(claims)


def assert_owns_what_it_made(tenant):
    assert tenant.agents_there() == tenant.agents
    assert tenant.workspaces_there() == tenant.workspaces
    assert tenant.jobs_there() == tenant.jobs
    wait_until("every delegation's end", lambda: None not in tenant.delegations_there().values())
    # The newest fifty of each workspace are listed.
    listed = tenant.delegations_there()
    assert listed.items() <= tenant.delegations.items(), listed
    assert set(tenant.agent.texts()) == set(tenant.said), "somebody else talked to its agent"
    assert all(tenant.mark in text for text in tenant.agent.texts())
    health = tenant.ask("GET", "/openorca/snapshot").json()["fleetHealth"]
    assert health["totalAgents"] == len(tenant.agents) + len(tenant.workspaces)


def assert_heard_only_its_own(tenant, tenants):
    others = [other for other in tenants if other is not tenant]
    for listener in tenant.listeners:
        assert not listener.ended
        heard = "\n".join(frame.text for frame in listener.frames)
        assert tenant.mark in heard, f"{type(listener).__name__} of {tenant.name} heard nothing at all"
        leaked = {secret for other in others for secret in other.secrets if secret in heard}
        assert not leaked, f"{tenant.name} heard {leaked}"


@pytest.fixture
def locked(binary, tmp_path):
    """A server whose doors ask for keys, and one job of somebody."""
    settings = {"REVEILLE_DOORS_REQUIRE_KEY": "true"}
    with running_server(binary, tmp_path, settings) as server:
        owner = server.create_key("owner", "read", "write", "ingest")
        stranger = server.create_key("stranger", "read", "write", "ingest")
        body = {"topic": TOPIC, "context": {"secret": "of-the-owner"}}
        status, job = server.call("POST", "/api/v1/jobs", body, key=owner)
        assert status == 200, job
        yield server, owner, stranger, job["job_id"]


def test_the_resp_door_shows_a_tenant_nothing_of_others(locked):
    server, _, stranger, job_id = locked
    with redis.Redis.from_url(server.url_of_resp_door(stranger)) as client:
        for key in ["sys:workers:snapshot", f"ctx:{job_id}", f"res:{job_id}"]:
            with pytest.raises(redis.exceptions.RedisError):
                client.get(key)
        with pytest.raises(redis.exceptions.RedisError):
            client.set(f"ctx:{job_id}", b"taken over")
    assert server.job(job_id)["context"] == {"secret": "of-the-owner"}


@pytest.mark.parametrize("pointer", ["redis://ctx:{job}", "redis://res:{job}", "redis://sys:workers:snapshot"])
@pytest.mark.parametrize("tenant", ["", "stranger", "owner"])
def test_a_job_over_the_nats_door_cannot_borrow_anothers_input(locked, pointer, tenant):
    """A pointer is only a name: whoever gives one must own what it names."""
    server, owner, stranger, job_id = locked
    request = job_pb2.JobRequest(
        job_id="borrower", topic=TOPIC, tenant_id=tenant, context_ptr=pointer.format(job=job_id)
    )
    reply = submit_over_nats(server, stranger, request)

    assert "of-the-owner" not in json.dumps(reply)
    status, job = server.call("GET", "/api/v1/jobs/borrower", key=stranger)
    assert status in (200, 404) and "of-the-owner" not in json.dumps(job), (status, job)
    assert owned_jobs(server, owner) == [job_id], "a stranger made a job of the owner's"


def test_a_job_over_the_nats_door_cannot_take_anothers_id(locked):
    server, owner, stranger, job_id = locked
    before = server.job(job_id)
    request = job_pb2.JobRequest(job_id=job_id, topic=TOPIC, context_ptr=f"redis://ctx:{job_id}")

    reply = submit_over_nats(server, stranger, request)

    assert not reply["ok"], reply
    assert server.call("GET", f"/api/v1/jobs/{job_id}", key=stranger)[0] == 404
    assert (owned_jobs(server, owner), owned_jobs(server, stranger)) == ([job_id], [])
    assert server.job(job_id) == before


def submit_over_nats(server, key, request):
    """What the server answers to a job over the bus."""
    packet = buspacket_pb2.BusPacket(trace_id="t", sender_id="s", protocol_version=1, job_request=request)
    packet.created_at.GetCurrentTime()
    data = packet.SerializeToString()
    with dial_nats(server, key) as connection:
        connection.sendall(b"SUB _INBOX.mine.1 1\r\n")
        connection.sendall(f"PUB sys.job.submit _INBOX.mine.1 {len(data)}\r\n".encode() + data + b"\r\n")
        return json.loads(read_until(connection, b"}\r\n").split(b"\r\n")[-2])


def owned_jobs(server, key):
    status, page = server.call("GET", "/api/v1/jobs", key=key)
    assert status == 200, page
    return [job["id"] for job in page["items"]]


@pytest.mark.parametrize("subject", [">", "sys.>", "worker.*.jobs", TOPIC, "_INBOX.>"])
def test_the_nats_door_lets_a_tenant_hear_nothing_of_others(locked, subject):
    server, _, stranger, _ = locked
    with dial_nats(server, stranger) as connection:
        connection.sendall(f"SUB {subject} 1\r\nPING\r\n".encode())
        assert b"-ERR" in read_until(connection, b"\r\n")
