"""A saga of stock parts: the SDK's client submits, its workers work, one fails for good, and what was done is undone."""

import asyncio
import json

import nats
import redis.asyncio as redis
from cap import submit_job
from cap.pb.cordum.agent.v1 import job_pb2

from harness import wait_until


async def book(server, job_id, payload):
    """Submits one booking over the bus, with what cancels it."""
    bus = await nats.connect(server.operator_nats_url, name="traveller")
    async with redis.from_url(server.operator_redis_url) as blobs:
        await blobs.set(f"ctx:{job_id}", json.dumps(payload))
    request = job_pb2.JobRequest(
        job_id=job_id,
        topic="job.book",
        context_ptr=f"redis://ctx:{job_id}",
        workflow_id="trip-7",
        compensation=job_pb2.Compensation(topic="job.cancel", labels={"of": job_id}),
    )
    await submit_job(bus, request, trace_id="trip-7", sender_id="traveller")
    await bus.drain()


def booked(server, job_id, payload):
    asyncio.run(book(server, job_id, payload))
    wait_until(f"job {job_id}", lambda: server.call("GET", f"/api/v1/jobs/{job_id}")[0] == 200)
    return server.ended_job(job_id)["state"]


def rollbacks(server):
    status, page = server.call("GET", "/api/v1/workflow-runs?workflow_id=trip-7")
    assert status == 200, page
    return [run for run in page["items"] if run["origin"] == "rollback"]


def test_what_stock_workers_did_is_undone_in_reverse_order(server, start_worker):
    start_worker("saga_worker.py")
    server.wait_for_workers("booker", "canceller")

    assert booked(server, "flight", {"seat": "12A"}) == "SUCCEEDED"
    assert booked(server, "hotel", {"room": 5}) == "SUCCEEDED"
    # What was done is known to the server alone from here on.
    server.kill()
    server.start()
    server.wait_for_workers("booker", "canceller")
    assert booked(server, "car", {"fail": True}) == "FAILED"

    [rollback] = wait_until("the rollback", lambda: rollbacks(server))
    _, rollback = server.call("GET", f"/api/v1/workflow-runs/{rollback['id']}?wait=30s")
    assert rollback["status"] == "succeeded", rollback
    steps = [rollback["steps"][f"undo[{number}]"] for number in range(2)]
    assert [server.job(step["job_id"])["state"] for step in steps] == ["SUCCEEDED"] * 2
    seen = [server.job(step["job_id"])["result"] for step in steps]
    assert [given["input"] for given in seen] == [{"room": 5}, {"seat": "12A"}]
    for given, of in zip(seen, ["hotel", "flight"], strict=True):
        labels = {"saga_compensation": "true", "is_compensation": "true", "saga_workflow_id": "trip-7", "of": of}
        assert labels.items() <= given["labels"].items()
        assert {"saga_compensation": "true", "saga_workflow_id": "trip-7"}.items() <= given["env"].items()
    assert steps[0]["started_at"] <= steps[1]["started_at"]

    _, stack = server.call("GET", f"/api/v1/workflow-runs/{rollback['parent_run_id']}")
    assert (stack["origin"], stack["status"], stack["rollback_run_id"]) == ("client", "failed", rollback["id"])
    shown = server.cli("run", "get", stack["id"])
    assert rollback["id"] in shown.stdout, shown


def test_a_saga_over_http_is_undone_too(server, start_worker):
    start_worker("saga_worker.py")
    server.wait_for_workers("booker", "canceller")

    def book_over_http(payload):
        body = {"topic": "job.book", "context": payload, "workflow_id": "trip-7", "compensation": {"topic": "job.cancel"}}
        status, answer = server.call("POST", "/api/v1/jobs", body)
        assert status in range(200, 300), (status, answer)
        return server.ended_job(answer["job_id"])["state"]

    assert book_over_http({"seat": "12A"}) == "SUCCEEDED"
    assert book_over_http({"fail": True}) == "FAILED"
    [rollback] = wait_until("the rollback", lambda: rollbacks(server))
    _, rollback = server.call("GET", f"/api/v1/workflow-runs/{rollback['id']}?wait=30s")
    assert rollback["status"] == "succeeded", rollback
    assert server.job(rollback["steps"]["undo[0]"]["job_id"])["result"]["input"] == {"seat": "12A"}
