"""A stock `Agent` from the package index does governed work for a server it has never heard of."""

import concurrent.futures
import json
import time

import pytest

from harness import TERMINAL_STATES, wait_until

WORKER_TTL_S = 30
BURST = 200


def test_the_command_line_prints_what_the_agent_returned(server, start_agent):
    start_agent("agent-1")

    done = server.cli("job", "submit", "--topic", "job.echo", "--wait", '{"x":1}')

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"x": 1}
    _, listing = server.call("GET", "/api/v1/jobs")
    [listed] = listing["items"]
    job = server.job(listed["id"])
    assert (job["state"], job["worker_id"], job["result"]) == ("SUCCEEDED", "agent-1", {"x": 1})


def test_an_exception_in_the_handler_fails_the_job(server, start_agent):
    start_agent("agent-1")

    job = server.ended_job(server.submit("job.echo", {"fail": True}))

    assert (job["state"], job["error_message"]) == ("FAILED", "handler failed")


def test_the_command_line_fails_when_the_job_does(server, start_agent):
    start_agent("agent-1")

    done = server.cli("job", "submit", "--topic", "job.echo", "--wait", '{"fail":true}')

    assert done.returncode != 0
    assert "handler failed" in done.stderr


def test_a_burst_is_shared_by_two_agents(server, start_agent):
    start_agent("agent-1", "--max-parallel", "4")
    start_agent("agent-2", "--max-parallel", "4")

    with concurrent.futures.ThreadPoolExecutor(max_workers=8) as pool:
        job_ids = list(pool.map(lambda number: server.submit("job.echo", {"number": number}), range(BURST)))
        jobs = list(pool.map(server.ended_job, job_ids))

    assert [job["state"] for job in jobs] == ["SUCCEEDED"] * BURST
    assert [job["result"] for job in jobs] == [{"number": number} for number in range(BURST)]
    assert {job["worker_id"] for job in jobs} == {"agent-1", "agent-2"}


def test_a_job_waits_for_its_agent_and_goes_when_it_comes(server, start_agent):
    job_id = server.submit("job.echo", {"x": 1})
    assert server.job(job_id)["state"] not in TERMINAL_STATES

    start_agent("agent-1")
    came = time.monotonic()
    job = server.ended_job(job_id)

    assert job["state"] == "SUCCEEDED"
    # The handshake suffices; the agent's first heartbeat would be five seconds away.
    assert time.monotonic() - came < 3


def test_the_same_agent_works_on_after_the_server_was_killed(server, start_agent):
    agent = start_agent("agent-1")
    # This job opens the agent's Redis connection, which then goes stale with the server.
    assert server.ended_job(server.submit("job.echo", {"x": 1}))["state"] == "SUCCEEDED"

    server.kill()
    server.start()
    job = server.ended_job(server.submit("job.echo", {"x": 2}))

    assert (job["state"], job["result"]) == ("SUCCEEDED", {"x": 2})
    assert agent.is_alive()


def test_a_job_in_hand_survives_a_killed_server(server, start_agent):
    agent = start_agent("agent-1")
    job_id = server.submit("job.echo", {"x": 1, "sleep_s": 1})
    wait_until("the job at the agent", lambda: server.job(job_id)["state"] == "RUNNING")

    server.kill()
    # The handler ends now, finds nobody to store its output, and the agent can but report that.
    time.sleep(2)
    server.start()
    job = server.ended_job(job_id)

    assert (job["state"], job["result"]) == ("SUCCEEDED", {"x": 1, "sleep_s": 1})
    assert agent.is_alive()


def test_a_waiting_job_survives_a_killed_server(server, start_agent):
    job_id = server.submit("job.echo", {"x": 1})

    server.kill()
    server.start()
    start_agent("agent-1")

    assert server.ended_job(job_id)["state"] == "SUCCEEDED"


@pytest.mark.slow
def test_a_killed_agents_job_finishes_on_another(server, start_agent):
    holder = start_agent("agent-1")
    job_id = server.submit("job.echo", {"x": 1, "sleep_s": 5})
    wait_until("the job at the first agent", lambda: server.job(job_id)["state"] == "RUNNING")
    start_agent("agent-2")

    holder.kill()
    killed = time.monotonic()
    job = server.ended_job(job_id, seconds=90)

    assert (job["state"], job["worker_id"]) == ("SUCCEEDED", "agent-2")
    assert time.monotonic() - killed < WORKER_TTL_S + 2 + 5


def test_sigterm_ends_the_server_in_order(server, start_agent):
    start_agent("agent-1")
    assert server.ended_job(server.submit("job.echo", {"x": 1}))["state"] == "SUCCEEDED"

    assert server.stop() == 0
