"""Stock workers with a key of one tenant, in the addresses that they are given anyway: they serve that tenant alone.

In every mode: a key that is shown at an open door counts, too.
"""

import re
import types

import pytest

from harness import running_server, running_worker, wait_until

SILENT_S_MAX = 3
MEMBERS_MAX = 1
# The SDK's own beats are five seconds apart.
BEATS_S = 15


@pytest.fixture
def server(binary, tmp_path):
    """Workers are forgotten between their beats."""
    settings = {
        "REVEILLE_FLEET_CAP_TTL_SECONDS": str(SILENT_S_MAX),
        "REVEILLE_LIMITS_MEMBERS_PER_TENANT": str(MEMBERS_MAX),
    }
    with running_server(binary, tmp_path, settings) as server:
        yield server


@pytest.fixture
def doors(server):
    """The doors as one of a tenant's own workers is told of them."""
    secret = server.create_key("acme", "worker")
    return types.SimpleNamespace(nats_url=server.url_of_nats_door(secret), redis_url=server.url_of_resp_door(secret))


@pytest.fixture
def acme(server):
    return server.create_key("acme", "read", "write")


def submit(server, key):
    status, job = server.call("POST", "/api/v1/jobs", {"topic": "job.echo", "context": {"whose": "mine"}}, key=key)
    assert status == 200, job
    return job["job_id"]


def assert_done(server, job_id):
    job = server.ended_job(job_id, BEATS_S)
    assert (job["state"], job["result"]) == ("SUCCEEDED", {"whose": "mine"}), job


def assert_serves_acme_alone(server, acme):
    beta = server.create_key("beta", "read", "write")
    theirs, ours = submit(server, beta), submit(server, acme)
    assert_done(server, ours)
    assert server.job(theirs)["state"] == "SCHEDULED"


def test_an_agent_with_a_tenants_key_serves_that_tenant_alone(server, doors, acme, tmp_path):
    with running_worker("echo_agent.py", doors, tmp_path, "--worker-id", "own"):
        server.wait_for_workers("own")
        assert_serves_acme_alone(server, acme)


def test_a_run_worker_with_a_tenants_key_serves_that_tenant_alone(server, doors, acme, tmp_path):
    with running_worker("run_worker_echo.py", doors, tmp_path, "--worker-id", "plain", "--heartbeat-s", "0.5"):
        server.wait_for_workers("plain")
        assert_serves_acme_alone(server, acme)


def test_an_agent_with_a_key_that_was_silent_for_too_long_is_given_jobs_again(server, doors, acme, tmp_path):
    with running_worker("echo_agent.py", doors, tmp_path, "--worker-id", "own"):
        server.wait_for_workers("own")
        wait_until("it is forgotten", lambda: not server.workers())
        assert_done(server, submit(server, acme))


def test_workers_with_a_tenants_key_are_no_more_than_its_quota(server, doors, tmp_path):
    with (
        running_worker("run_worker_echo.py", doors, tmp_path, "--worker-id", "one", "--heartbeat-s", "0.5"),
        running_worker("run_worker_echo.py", doors, tmp_path, "--worker-id", "two", "--heartbeat-s", "0.5"),
    ):
        wait_until("a worker is refused", lambda: refusals(server) > 0, BEATS_S)
        assert len(server.workers()) == MEMBERS_MAX


def refusals(server):
    """Workers that were turned away because of the quota."""
    metrics = server.exchange("GET", "/metrics").text
    counted = re.search(r'^cordum_scheduler_quota_exceeded_total{quota="members"} (\d+)$', metrics, re.MULTILINE)
    return int(counted[1]) if counted else 0
