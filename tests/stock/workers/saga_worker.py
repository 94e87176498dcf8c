"""Stock `run_worker`s for a saga: bookings that succeed until one is told to fail for good, and what cancels them.

What a worker was given goes into the job's own result, so that a test can read it there.
"""

import asyncio
import json
import os

import nats
import redis.asyncio as redis
from cap import heartbeat_loop, heartbeat_payload, run_worker
from cap.pb.cordum.agent.v1 import job_pb2

POINTER_SCHEME = "redis://"


async def handle(request: job_pb2.JobRequest) -> job_pb2.JobResult:
    result_key = f"res:{request.job_id}"
    async with redis.from_url(os.environ["REDIS_URL"]) as blobs:
        payload = json.loads(await blobs.get(request.context_ptr.removeprefix(POINTER_SCHEME)))
        seen = {"input": payload, "labels": dict(request.labels), "env": dict(request.env)}
        await blobs.set(result_key, json.dumps(seen))
    is_fatal = request.topic == "job.book" and payload.get("fail")
    return job_pb2.JobResult(
        job_id=request.job_id,
        status=job_pb2.JOB_STATUS_FAILED_FATAL if is_fatal else job_pb2.JOB_STATUS_SUCCEEDED,
        error_message="no room" if is_fatal else "",
        result_ptr=POINTER_SCHEME + result_key,
    )


async def serve() -> None:
    nats_url = os.environ["NATS_URL"]
    beats = await nats.connect(nats_url, name="beats")
    workers = {"booker": "job.book", "canceller": "job.cancel"}

    def beat(worker_id: str) -> bytes:
        return heartbeat_payload(worker_id=worker_id, pool="", active_jobs=0, max_parallel=4, cpu_load=0.0)

    await asyncio.gather(
        *(run_worker(nats_url, topic, handle, sender_id=worker) for worker, topic in workers.items()),
        *(heartbeat_loop(beats, lambda worker=worker: beat(worker), interval=0.5) for worker in workers),
    )


if __name__ == "__main__":
    asyncio.run(serve())
