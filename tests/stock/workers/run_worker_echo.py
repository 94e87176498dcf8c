"""A stock `run_worker` with a `heartbeat_loop` beside it: the SDK's plain helpers, without the Agent.

`run_worker` never touches Redis, so a handler that needs its input or has an output follows the pointers itself.
It says no handshake either, and the loop's first beat comes only after a whole interval; until then all that the
server can know of this worker is its subscription to the topic.
"""

import argparse
import asyncio
import os

import nats
import redis.asyncio as redis
from cap import heartbeat_loop, heartbeat_payload, run_worker
from cap.pb.cordum.agent.v1 import job_pb2

POINTER_SCHEME = "redis://"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker-id", default="echo-run-worker")
    parser.add_argument("--topic", default="job.echo")
    parser.add_argument("--pool", default="")
    parser.add_argument("--heartbeat-s", type=float, default=5.0)
    return parser.parse_args()


async def serve(arguments: argparse.Namespace) -> None:
    nats_url = os.environ.get("NATS_URL", "nats://127.0.0.1:4222")
    redis_url = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
    beats = await nats.connect(nats_url, name=f"{arguments.worker_id}-beats")

    async def echo(request: job_pb2.JobRequest) -> job_pb2.JobResult:
        result_key = f"res:{request.job_id}"
        async with redis.from_url(redis_url) as blobs:
            payload = await blobs.get(request.context_ptr.removeprefix(POINTER_SCHEME))
            if payload is None:
                raise RuntimeError("the context is gone")
            await blobs.set(result_key, payload)
        return job_pb2.JobResult(
            job_id=request.job_id,
            status=job_pb2.JOB_STATUS_SUCCEEDED,
            result_ptr=POINTER_SCHEME + result_key,
        )

    def beat() -> bytes:
        return heartbeat_payload(
            worker_id=arguments.worker_id, pool=arguments.pool, active_jobs=0, max_parallel=1, cpu_load=0.0
        )

    await asyncio.gather(
        run_worker(nats_url, arguments.topic, echo, sender_id=arguments.worker_id),
        heartbeat_loop(beats, beat, interval=arguments.heartbeat_s),
    )


if __name__ == "__main__":
    asyncio.run(serve(parse_arguments()))
