"""A worker dies without a word while it holds jobs."""

import time

from harness import wait_until
from rig import assert_all_succeeded, listed

WORKER_TTL_S = 30
NOTICE_S_MAX = 2
JOBS = 8
JOB_S = 5


def test_a_job_in_hand_names_its_worker(server, start_echo):
    start_echo("echo-1")
    job_id = server.submit("job.echo", {"sleep_ms": 1000})
    wait_until("the job at the worker", lambda: server.job(job_id)["state"] == "RUNNING")

    job = server.job(job_id)

    assert job["worker_id"] == "echo-1"
    workers = {mark["event"]: mark["worker_id"] for mark in job["timeline"]}
    assert workers == {"submit": "", "allow": "", "assign": "echo-1", "start": "echo-1"}


def test_the_jobs_of_a_killed_worker_finish_on_another(server, start_echo):
    holder = start_echo("echo-1")
    inputs = [{"number": number, "sleep_ms": JOB_S * 1000} for number in range(JOBS)]
    acknowledged = {number: server.submit("job.echo", inputs[number]) for number in range(JOBS)}

    # There is no other worker yet, so it is this one that runs them.
    wait_until("all jobs at the first worker", lambda: len(listed(server, "RUNNING")) == JOBS)
    start_echo("echo-2")

    holder.kill()
    killed = time.monotonic()
    seconds_max = WORKER_TTL_S + NOTICE_S_MAX + JOB_S
    jobs = assert_all_succeeded(server, inputs, acknowledged, seconds_max)

    took_s = time.monotonic() - killed
    print(f"{JOBS} jobs of {JOB_S} s finished elsewhere {took_s:.1f} s after their worker was killed")
    assert {job["worker_id"] for job in jobs} == {"echo-2"}
    assert took_s < seconds_max
