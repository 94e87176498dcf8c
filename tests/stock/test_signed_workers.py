"""Stock workers with keys of their own, where signed packets are required: at the doors, and on a real NATS."""

import contextlib
import json
import re
import subprocess

import pytest

from engines import running_engines, running_replicas
from harness import TERMINAL_STATES, running_server, running_worker, wait_until

REQUIRED = {"REVEILLE_FLEET_SIGNATURES": "require"}
TENANT = "default"


@pytest.fixture(scope="module")
def engines(tmp_path_factory):
    with running_engines(tmp_path_factory.mktemp("engines")) as engines:
        yield engines


@pytest.fixture(params=["doors", "nats"])
def place(request, binary, tmp_path):
    """Servers where signatures are required, the first of which is asked."""
    if request.param == "doors":
        with running_server(binary, tmp_path, REQUIRED) as server:
            yield [server]
        return
    engines = request.getfixturevalue("engines")
    engines.redis.cli("FLUSHALL")
    shared = tmp_path / "servers.pem"
    subprocess.run([binary, "worker-key", "pair", str(shared)], check=True, capture_output=True)
    settings = REQUIRED | {"REVEILLE_FLEET_SIGNING_KEY_FILE": str(shared)}
    with running_replicas(binary, tmp_path, engines, 2, settings) as replicas:
        yield replicas


class Keys:
    """Key pairs of workers, and what the servers sign with."""

    def __init__(self, server, folder):
        self.server, self.folder = server, folder
        shown = json.loads(server.cli("worker-key", "server", "--json").stdout)
        assert shown["signatures"] == "require"
        self.server_key = folder / "server.pub"
        self.server_key.write_text(shown["publicKey"])
        self.server_key_id = shown["keyId"]

    def pair(self, name):
        private = self.folder / f"{name}.pem"
        subprocess.run([self.server.binary, "worker-key", "pair", str(private)], check=True, capture_output=True)
        return private, private.with_name(private.name + ".pub")

    def register(self, worker):
        private, public = self.pair(worker)
        done = self.server.cli(
            "worker-key", "register", worker, "--public-key", str(public), "--tenant", TENANT, "--json"
        )
        assert done.returncode == 0, done.stderr
        return private, json.loads(done.stdout)

    def words(self, mode, worker, private, key, *more):
        return [
            *("--mode", mode, "--worker-id", worker, "--tenant", TENANT),
            *("--private-key", str(private), "--proof-key-id", key["publicKey"]["proofKeyId"]),
            *("--server-key", str(self.server_key), "--server-key-id", self.server_key_id, *more),
        ]


@pytest.fixture
def keys(place, tmp_path):
    return Keys(place[0], tmp_path)


@pytest.fixture
def start(place, tmp_path):
    with contextlib.ExitStack() as workers:
        yield lambda *words: workers.enter_context(
            running_worker("signed_agent.py", place[0], tmp_path, *words)
        )


def test_an_agent_that_signs_does_its_work(place, keys, start):
    private, key = keys.register("signer")
    start(*keys.words("sign", "signer", private, key))
    for server in place:
        server.wait_for_workers("signer")
    for number in range(6):
        job = place[number % len(place)].ended_job(place[0].submit("job.echo", {"n": number}))
        assert (job["state"], job["result"], job["worker_id"]) == ("SUCCEEDED", {"n": number}, "signer")


def test_an_agent_in_trust_mode_proves_itself_and_renews_its_session(place, keys, start):
    private, key = keys.register("trusted")
    worker = start(*keys.words("trust", "trusted", private, key, "--renew-s", "1"))
    place[0].wait_for_workers("trusted")
    for number in range(6):
        job = place[number % len(place)].ended_job(place[0].submit("job.echo", {"n": number}))
        assert (job["state"], job["result"]) == ("SUCCEEDED", {"n": number})
    assert worker.is_alive()


def test_the_plain_helper_signs_too(place, keys, start):
    private, key = keys.register("helper")
    start(*keys.words("helper", "helper", private, key))
    job = place[0].ended_job(place[0].submit("job.echo", {"x": 1}))
    assert (job["state"], job["worker_id"]) == ("SUCCEEDED", "helper")


def test_who_signs_with_another_key_or_not_at_all_is_not_heard(place, keys, start, tmp_path):
    server = place[0]
    _, key = keys.register("honest")
    other, _ = keys.pair("other")
    start(*keys.words("sign", "honest", other, key))
    # Its handshake, and a beat after that.
    wait_until("the forger is refused", lambda: refused(place) >= 2)
    with running_worker("echo_agent.py", server, tmp_path, "--worker-id", "plain"):
        so_far = refused(place)
        wait_until("who does not sign is refused", lambda: refused(place) >= so_far + 2)
        job_id = server.submit("job.echo", {"x": 1})
        wait_until("more is refused", lambda: refused(place) >= so_far + 4)
        assert server.job(job_id)["state"] not in TERMINAL_STATES


def test_a_revoked_key_ends_what_its_worker_may_say(place, keys, start):
    server = place[0]
    private, key = keys.register("gone")
    start(*keys.words("trust", "gone", private, key))
    server.wait_for_workers("gone")
    assert server.cli("key", "revoke", key["id"]).returncode == 0
    wait_until("its packets are refused", lambda: refused(place))


def test_a_rotated_key_goes_on_until_its_worker_has_the_next(place, keys, start):
    server = place[0]
    private, key = keys.register("turned")
    first = start(*keys.words("sign", "turned", private, key))
    server.wait_for_workers("turned")
    next_private, next_public = keys.pair("turned-next")
    done = server.cli("worker-key", "rotate", key["id"], "--public-key", str(next_public), "--json")
    assert done.returncode == 0, done.stderr
    assert server.ended_job(server.submit("job.echo", {"x": 1}))["state"] == "SUCCEEDED"
    first.kill()
    start(*keys.words("sign", "turned", next_private, json.loads(done.stdout)["key"]))
    job = server.ended_job(server.submit("job.echo", {"x": 2}))
    assert (job["state"], job["worker_id"]) == ("SUCCEEDED", "turned")


def refused(place):
    """How many packets the servers have refused because they were not proven to be their workers' own."""
    pages = [server.exchange("GET", "/metrics").text for server in place]
    counts = [re.search(r'packets_unproven_total\{mode="require"\} (\d+)', page) for page in pages]
    return sum(int(count[1]) for count in counts if count)
