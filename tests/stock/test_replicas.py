"""Two servers on Redis, NATS and PostgreSQL, with stock workers on the engines themselves."""

import asyncio
import json
import signal
import subprocess
import time
import types

import nats
import pytest
from cap.pb.cordum.agent.v1 import buspacket_pb2, job_pb2
from google.protobuf.timestamp_pb2 import Timestamp

from engines import knows, running_engines, running_replicas
from harness import running_worker, wait_until
from streams import EventStream


@pytest.fixture(scope="module")
def engines(tmp_path_factory):
    with running_engines(tmp_path_factory.mktemp("engines")) as engines:
        yield engines


@pytest.fixture
def replicas(binary, tmp_path, engines):
    engines.redis.cli("FLUSHALL")
    with running_replicas(binary, tmp_path, engines, 2) as replicas:
        yield replicas


@pytest.fixture
def agent(replicas, tmp_path):
    first, second = replicas
    with running_worker("echo_agent.py", first, tmp_path, "--worker-id", "w1") as agent:
        first.wait_for_workers("w1")
        second.wait_for_workers("w1")
        yield agent


def test_stock_agents_complete_jobs_through_both(replicas, agent):
    jobs = []
    for number in range(40):
        replica = replicas[number % 2]
        jobs.append((number, replica.submit("job.echo", {"n": number})))
    for number, job_id in jobs:
        # Whichever server is asked, and not only the one that took the job.
        for replica in replicas:
            assert replica.ended_job(job_id)["state"] == "SUCCEEDED"


def test_the_runbook_of_the_seed(replicas, agent, engines):
    """Seed 000, "Operator runbook", with a restart of one process for the step of kubectl."""
    first, second = replicas
    wait_until("a snapshot", lambda: "w1" in engines.redis.cli("GET", "sys:workers:snapshot"))
    snapshot = json.loads(engines.redis.cli("GET", "sys:workers:snapshot"))
    assert snapshot["captured_at"] and snapshot["writer_id"]
    assert "w1" in json.dumps(snapshot["workers"])
    first.kill()
    first.start()
    assert "w1" in first.workers(), "listed right after the start, before its next beat"
    assert "hydrated" in first.log_text()


def test_a_killed_server_leaves_no_job_behind(replicas, tmp_path):
    first, second = replicas
    jobs = [first.submit("job.echo", {"n": number}) for number in range(20)]
    first.kill()
    with running_worker("echo_agent.py", second, tmp_path, "--worker-id", "late"):
        for job_id in jobs:
            assert second.ended_job(job_id)["state"] == "SUCCEEDED"
    assert "taken over" in second.log_text()


def test_a_server_that_is_stopped_for_long_joins_again(replicas, agent):
    first, second = replicas
    first.process.send_signal(signal.SIGSTOP)
    try:
        wait_until("the other takes over", lambda: knows(second, 1))
        jobs = [second.submit("job.echo", {"n": number}) for number in range(10)]
        for job_id in jobs:
            assert second.ended_job(job_id)["state"] == "SUCCEEDED"
    finally:
        first.process.send_signal(signal.SIGCONT)
    wait_until("both are back", lambda: knows(first, 2) and knows(second, 2))
    job_id = first.submit("job.echo", {"n": 0})
    assert second.ended_job(job_id)["state"] == "SUCCEEDED"


def test_a_key_made_at_one_opens_the_other(replicas):
    first, second = replicas
    secret = first.create_key("acme", "read")
    wait_until("the key is known", lambda: second.call("GET", "/api/v1/jobs", key=secret)[0] == 200, 5)


def test_cut_off_from_redis_it_says_so_and_comes_back(replicas, agent, engines):
    first, second = replicas
    engines.redis.kill()
    try:
        wait_until("not ready", lambda: first.call("GET", "/readyz")[0] == 503, 15)
        assert first.call("GET", "/readyz")[1]["status"] == "cut_off"
        status, answer = first.call("POST", "/api/v1/jobs", {"topic": "job.echo", "context": {}})
        assert status == 503, answer
    finally:
        engines.redis.start()
    wait_until("both are back", lambda: knows(first, 2) and knows(second, 2))
    job_id = first.submit("job.echo", {"n": 0})
    assert second.ended_job(job_id)["state"] == "SUCCEEDED"


def test_cut_off_from_nats_it_says_so_and_comes_back(replicas, agent, engines):
    first, second = replicas
    engines.nats.kill()
    try:
        wait_until("not ready", lambda: first.call("GET", "/readyz")[0] == 503, 15)
        assert first.call("GET", "/readyz")[1]["status"] == "cut_off"
    finally:
        engines.nats.start()
    wait_until("both are back", lambda: knows(first, 2) and knows(second, 2))
    job_id = first.submit("job.echo", {"n": 0})
    assert second.ended_job(job_id)["state"] == "SUCCEEDED"


def test_an_agent_that_beats_at_one_is_known_at_the_other(replicas):
    first, second = replicas
    secret = first.create_key("acme", "ingest", "read")
    wait_until("the key is known", lambda: second.call("GET", "/v1/agents", key=secret)[0] == 200, 5)
    beat = {"agent_id": "voice-1", "agent_name": "voice", "status": "idle"}
    status, answer = first.call("POST", "/v1/agents/heartbeat", beat, key=secret)
    assert status in range(200, 300), answer
    wait_until("it is known", lambda: "voice-1" in json.dumps(second.call("GET", "/v1/agents", key=secret)[1]), 5)


def test_submitted_by_packet_is_kept_until_a_server_is_there(replicas, agent, engines):
    first, second = replicas
    # What the worker said of itself when it started is in the snapshot.
    wait_until("a snapshot", lambda: "w1" in engines.redis.cli("GET", "sys:workers:snapshot"))
    first.kill()
    second.kill()
    job_id = f"kept-{time.time_ns()}"
    asyncio.run(submit_packet(engines, job_id))
    first.start()
    assert first.ended_job(job_id)["state"] == "SUCCEEDED"


async def submit_packet(engines, job_id):
    """As a stock client submits over NATS."""
    engines.redis.cli("SET", f"ctx:{job_id}", '{"n": 1}')
    client = await nats.connect(engines.nats.url)
    created = Timestamp()
    created.GetCurrentTime()
    packet = buspacket_pb2.BusPacket(trace_id=job_id, sender_id="client", created_at=created, protocol_version=1)
    job = job_pb2.JobRequest(job_id=job_id, topic="job.echo", context_ptr=f"redis://ctx:{job_id}")
    packet.job_request.CopyFrom(job)
    await client.jetstream().publish("sys.job.submit", packet.SerializeToString())
    await client.close()


def test_a_job_costs_at_most_eight_trips_to_redis(replicas, agent, engines):
    """From POST to SUCCEEDED, the worker's two among them. MONITOR shows what clients send; what scripts do in
    Redis itself is marked `lua`."""
    first, second = replicas
    with engines.redis.monitor() as seen:
        jobs = [first.submit("job.echo", {"n": number}) for number in range(30)]
        for job_id in jobs:
            # Asking how it went would be a trip of its own.
            state = ["HGET", f"job:meta:{job_id}", "state"]
            wait_until(job_id, lambda state=state: engines.redis.cli(*state) == "succeeded")
        lines = seen()
    trips = []
    for job_id in jobs:
        own = [line for line in lines if job_id in line and "lua]" not in line and '"HGET"' not in line]
        trips.append(len(own))
    print("trips", sorted(trips))
    assert min(trips) >= 4, "submit, the worker's two, and the result are there"
    assert max(trips) <= 8, trips


def test_the_doctor_looks_and_touches_nothing(binary, engines, tmp_path):
    engines.redis.cli("FLUSHALL")
    command = [binary, "doctor", *engines.flags]
    seen = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
    assert seen.returncode == 0, seen
    found = json.loads(seen.stdout)
    assert found["fit"] and {finding["engine"] for finding in found["findings"]} == {"Redis", "NATS", "PostgreSQL"}
    assert engines.redis.cli("DBSIZE") == "0"
    engines.redis.cli("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    try:
        seen = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
        assert seen.returncode == 1 and "throws jobs away" in seen.stdout, seen
        refused = subprocess.run(
            [binary, "serve", "--http", "127.0.0.1:0", *engines.flags],
            capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path,
        )  # fmt: skip
        assert refused.returncode == 1 and "noeviction" in refused.stderr, refused
    finally:
        engines.redis.cli("CONFIG", "SET", "maxmemory-policy", "noeviction")


def test_a_subscriber_goes_on_at_another_server(replicas, agent):
    """Killed with -9 in the middle of the work. Every change of every job is told once, in order."""
    first, second = replicas
    path, headers = "/api/v1/events?kinds=job", {"X-API-Key": first.key}
    with EventStream(first, path, headers) as stream:
        stream.wait_for("its start", lambda frame: frame.event == "snapshot")
        jobs = [second.submit("job.echo", {"n": number}) for number in range(15)]
        stream.wait_for("a job", lambda frame: frame.event == "job.updated")
        first.kill()
    heard = list(stream.frames)
    jobs += [second.submit("job.echo", {"n": number}) for number in range(15, 30)]
    with EventStream(second, path, {**headers, "Last-Event-ID": heard[-1].id}) as stream:
        for job_id in jobs:
            assert second.ended_job(job_id)["state"] == "SUCCEEDED"
        last = jobs[-1]
        stream.wait_for("its end", lambda frame: frame.data.get("job_id") == last and frame.data["state"] == "SUCCEEDED")
        wait_until("the end of the others", lambda: ended(heard[1:] + stream.frames) == set(jobs))
    events = heard[1:] + stream.frames
    assert {frame.event for frame in events} == {"job.updated"}, "nobody starts afresh"
    places = [int(frame.id.split("-")[1]) for frame in events]
    assert places == sorted(set(places)), "once each, in order"
    for job_id in jobs:
        told = [frame.data for frame in events if frame.data["job_id"] == job_id]
        assert told[0]["before"] in (None, "PENDING", "SCHEDULED"), told
        for before, after in zip(told, told[1:]):
            # A job that ends at once has run, and nobody was told of that apart.
            ran = (before["state"], after["before"]) == ("DISPATCHED", "RUNNING")
            assert after["before"] == before["state"] or ran, told


def ended(events):
    return {frame.data["job_id"] for frame in events if frame.data["state"] == "SUCCEEDED"}


def test_whoever_watches_is_told_when_redis_has_lost_what_was_told(replicas, agent, engines):
    first, second = replicas
    path, headers = "/api/v1/events?kinds=job", {"X-API-Key": first.key}
    with EventStream(first, path, headers) as stream:
        stream.wait_for("its start", lambda frame: frame.event == "snapshot")
        first.ended_job(first.submit("job.echo", {}))
        heard = stream.wait_for("a job", lambda frame: frame.event == "job.updated")
        engines.redis.cli("DEL", "reveille:events")
        stream.wait_for("that it missed something", lambda frame: frame.event == "snapshot", after=1)
    with EventStream(second, path, {**headers, "Last-Event-ID": heard.id}) as stream:
        stream.wait_for("that it missed something", lambda frame: frame.event == "snapshot")
        job_id = first.submit("job.echo", {})
        stream.wait_for("a new job", lambda frame: frame.data.get("job_id") == job_id)


def test_a_worker_that_introduced_itself_to_nobody_gets_jobs(binary, tmp_path, engines):
    engines.redis.cli("FLUSHALL")
    engines_alone = types.SimpleNamespace(nats_url=engines.nats.url, redis_url=engines.redis.url)
    with running_worker("echo_agent.py", engines_alone, tmp_path, "--worker-id", "early"):
        # It beats after it has introduced itself.
        assert asyncio.run(heard_on(engines.nats.url, "sys.heartbeat"))
        with running_replicas(binary, tmp_path, engines, 1) as (replica,):
            replica.wait_for_workers("early")
            assert replica.ended_job(replica.submit("job.echo", {}))["state"] == "SUCCEEDED"
            # From here on it is known what it serves.
            assert replica.ended_job(replica.submit("job.echo", {}))["worker_id"] == "early"


async def heard_on(url, subject):
    client = await nats.connect(url)
    try:
        listener = await client.subscribe(subject)
        return await listener.next_msg(timeout=30)
    finally:
        await client.close()
