"""The SDK's plain helpers: `run_worker` says no handshake and hears no direct subject, only its topic."""

import json


def test_a_worker_known_only_by_its_subscription_gets_the_job(server, start_worker):
    # The first heartbeat is a minute away: the subscription is all that the server has to go by.
    start_worker("run_worker_echo.py", "--worker-id", "plain-1", "--heartbeat-s", "60")

    done = server.cli("job", "submit", "--topic", "job.echo", "--wait", '{"x":1}')

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"x": 1}


def test_a_worker_known_by_its_heartbeat_gets_the_job(server, start_worker):
    start_worker("run_worker_echo.py", "--worker-id", "plain-1", "--heartbeat-s", "0.5")
    server.wait_for_workers("plain-1")

    job = server.ended_job(server.submit("job.echo", {"x": 1}))

    assert (job["state"], job["worker_id"], job["result"]) == ("SUCCEEDED", "plain-1", {"x": 1})


def test_jobs_queue_behind_a_serial_worker(server, start_worker):
    start_worker("run_worker_echo.py", "--worker-id", "plain-1", "--heartbeat-s", "0.5")
    server.wait_for_workers("plain-1")

    job_ids = [server.submit("job.echo", {"number": number}) for number in range(20)]

    assert [server.ended_job(job_id)["state"] for job_id in job_ids] == ["SUCCEEDED"] * len(job_ids)
