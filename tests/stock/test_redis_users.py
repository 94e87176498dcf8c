"""The users of `deploy/redis/users.acl` may do what servers and workers do, and not more."""

import pathlib
import subprocess

import pytest

from engines import Redis, find, running_engines, running_replicas
from harness import running_worker, wait_until

USERS = pathlib.Path(__file__).parents[2] / "deploy" / "redis" / "users.acl"


class RedisWithUsers(Redis):
    @property
    def url(self):
        return f"redis://reveille:change-me-reveille@127.0.0.1:{self.port}"

    @property
    def worker_url(self):
        return f"redis://worker:change-me-worker@127.0.0.1:{self.port}"

    def command(self):
        return [*super().command(), "--aclfile", str(USERS)]

    def user(self):
        return []

    def answers(self):
        return self.says(b"PING\r\n", b"NOAUTH")

    def as_user(self, name, *words):
        command = [find("redis-cli"), "-p", str(self.port), "--user", name, "--pass", f"change-me-{name}", "--no-auth-warning"]
        return subprocess.run([*command, *words], capture_output=True, text=True, timeout=30, check=True).stdout.strip()


@pytest.fixture
def replicas(binary, tmp_path):
    with running_engines(tmp_path, redis=RedisWithUsers) as engines:
        with running_replicas(binary, tmp_path, engines, 2) as replicas:
            yield replicas


def test_jobs_and_workflows_run_with_the_users_of_the_deployment(replicas, tmp_path):
    first, second = replicas
    redis = first.engines.redis
    steps = {
        "a": {"topic": "job.echo", "input": {"n": 1}, "compensation": {"topic": "job.echo", "input": {"undo": 1}}},
        "wait": {"type": "delay", "delay_sec": 1, "depends_on": ["a"]},
        "b": {"topic": "job.echo", "depends_on": ["wait"], "input": {"fail": True}},
    }
    assert first.call("POST", "/api/v1/workflows", {"id": "w", "name": "w", "steps": steps})[0] == 201

    class Door:
        nats_url, redis_url = first.nats_url, redis.worker_url

    with running_worker("echo_agent.py", Door, tmp_path, "--worker-id", "a1"):
        second.wait_for_workers("a1")
        job = second.ended_job(first.submit("job.echo", {"hello": "you"}))
        assert (job["state"], job["result"]) == ("SUCCEEDED", {"hello": "you"}), job
        run = first.call("POST", "/api/v1/workflows/w/runs", {"input": {}})[1]["run_id"]

        def undone():
            detail = second.call("GET", f"/api/v1/workflow-runs/{run}")[1]
            rollback = detail["rollback_run_id"]
            return rollback and first.call("GET", f"/api/v1/workflow-runs/{rollback}")[1]["status"] == "succeeded"

        wait_until("the rollback", undone, 60)
        lines = second.call("GET", f"/api/v1/workflow-runs/{run}/timeline")[1]
        assert lines, "the timeline is read"
        assert first.call("DELETE", f"/api/v1/workflow-runs/{run}")[0] == 204
    for replica in replicas:
        assert "NOPERM" not in replica.log_text(), replica.log_text()
    assert "NOPERM" in redis.as_user("worker", "GET", "job:seq")
    assert "NOPERM" in redis.as_user("operator", "SET", "job:seq", "1")
    assert redis.as_user("operator", "ZCARD", "job:recent") != "0"
