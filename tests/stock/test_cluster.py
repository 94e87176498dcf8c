"""Two servers whose Redis is a Redis Cluster, with workers that know how to speak to one."""

import json
import pathlib
import subprocess

import pytest

from engines import RedisCluster, running_engines, running_replicas
from harness import running_worker, wait_until
from rig import running_echo

JOBS = 30
DAY_MS = 24 * 60 * 60 * 1000


@pytest.fixture(scope="module")
def engines(tmp_path_factory):
    with running_engines(tmp_path_factory.mktemp("engines"), redis=RedisCluster) as engines:
        yield engines


@pytest.fixture
def replicas(binary, tmp_path, engines):
    for node in engines.redis.nodes:
        node.cli("FLUSHALL")
    with running_replicas(binary, tmp_path, engines, 2) as replicas:
        yield replicas


def completed(replicas, engines):
    """Jobs go through both servers; says under which names their results are."""
    jobs = [(n, replicas[n % 2].submit("job.echo", {"n": n})) for n in range(JOBS)]
    results = []
    for number, job_id in jobs:
        job = replicas[(number + 1) % 2].ended_job(job_id)
        assert job["state"] == "SUCCEEDED", job
        assert job["context_ptr"] == f"redis://{{rv}}ctx:{job_id}" and job["context"] == {"n": number}, job
        assert job["result_ptr"] == f"redis://res:{job_id}" and job["result"] == {"n": number}, job
        results.append(f"res:{job_id}")
    nodes = {engines.redis.cli("CLUSTER", "KEYSLOT", name) for name in results}
    assert len(nodes) > 1, "results are spread over slots"
    return results


def test_a_worker_of_our_sdk_completes_jobs(replicas, engines, binary, tmp_path):
    echo = pathlib.Path(binary).parent / "examples" / "echo"
    with running_echo(str(echo), replicas[0], tmp_path, "w1"):
        for replica in replicas:
            replica.wait_for_workers("w1")
        completed(replicas, engines)
        wait_until("a snapshot", lambda: "w1" in engines.redis.cli("GET", "{rv}sys:workers:snapshot"))


def test_a_stock_agent_with_a_store_for_clusters_completes_jobs(replicas, engines, tmp_path):
    with running_worker("cluster_agent.py", replicas[0], tmp_path):
        for replica in replicas:
            replica.wait_for_workers("cluster-agent")
        for name in completed(replicas, engines):
            # The SDK gives its results no end. The job's own end does.
            assert 0 < int(engines.redis.cli("PTTL", name)) <= DAY_MS


def test_a_killed_server_leaves_no_job_behind_on_a_cluster(replicas, engines, binary, tmp_path):
    first, second = replicas
    jobs = [first.submit("job.echo", {"n": number}) for number in range(10)]
    first.kill()
    echo = pathlib.Path(binary).parent / "examples" / "echo"
    with running_echo(str(echo), second, tmp_path, "late"):
        for job_id in jobs:
            assert second.ended_job(job_id)["state"] == "SUCCEEDED"


def test_the_doctor_says_that_it_is_a_cluster(binary, engines, tmp_path):
    command = [binary, "doctor", *engines.flags, "--json"]
    seen = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
    assert seen.returncode == 0, seen
    found = json.loads(seen.stdout)["findings"]
    assert "a cluster of 3 primaries; our keys are on one of them" in [one["finding"] for one in found]
