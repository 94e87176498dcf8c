"""A worker dies without a word while it holds jobs."""

import time

from harness import wait_until
from rig import assert_all_succeeded, listed

WORKER_TTL_S = 30
NOTICE_S_MAX = 2
JOBS = 8
# Long enough to be in hand when the worker dies, short enough to be done again within the notice.
JOB_MS = 1500


def test_a_job_in_hand_names_its_worker(server, start_echo):
    start_echo("echo-1")
    # For longer than anybody looks; the worker ends with the test.
    job_id = server.submit("job.echo", {"sleep_ms": 60_000})
    wait_until("the job at the worker", lambda: server.job(job_id)["state"] == "RUNNING")

    job = server.job(job_id)

    assert job["worker_id"] == "echo-1"
    workers = {mark["event"]: mark["worker_id"] for mark in job["timeline"]}
    assert workers == {"submit": "", "allow": "", "assign": "echo-1", "start": "echo-1"}


def test_the_jobs_of_a_killed_worker_finish_on_another(server, start_echo):
    holder = start_echo("echo-1")
    start_echo("echo-2")
    inputs = [{"number": number, "sleep_ms": JOB_MS} for number in range(JOBS)]
    acknowledged = {number: submit_to(server, "echo-1", inputs[number]) for number in range(JOBS)}
    wait_until("all jobs at the first worker", lambda: len(listed(server, "RUNNING")) == JOBS)
    assert {server.job(job_id)["worker_id"] for job_id in acknowledged.values()} == {"echo-1"}

    holder.kill()
    killed = time.monotonic()
    # Ended, not only started again: the job's own time is within the notice.
    jobs = assert_all_succeeded(server, inputs, acknowledged, WORKER_TTL_S + NOTICE_S_MAX)

    took_s = time.monotonic() - killed
    print(f"{JOBS} jobs of {JOB_MS} ms finished elsewhere {took_s:.1f} s after their worker was killed")
    assert {job["worker_id"] for job in jobs} == {"echo-2"}
    assert took_s < WORKER_TTL_S + NOTICE_S_MAX


def submit_to(server, worker, payload):
    body = {"topic": "job.echo", "context": payload, "labels": {"preferred_worker_id": worker}}
    status, answer = server.call("POST", "/api/v1/jobs", body)
    assert status == 200, (status, answer)
    return answer["job_id"]
