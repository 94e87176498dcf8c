"""A worker on plain nats-py and the stock packets: it answers each job and says which headers came with it.

It knows nothing of tracing either. What it saw goes into the job's own result.
"""

import asyncio
import json
import os
import sys

import nats
import redis.asyncio as redis
from cap.pb.cordum.agent.v1 import buspacket_pb2, handshake_pb2, job_pb2

WORKER = sys.argv[1]
TOPIC = "job.echo"


def envelope(trace_id):
    packet = buspacket_pb2.BusPacket(trace_id=trace_id, sender_id=WORKER, protocol_version=1)
    packet.created_at.GetCurrentTime()
    return packet


async def main():
    bus = await nats.connect(os.environ["NATS_URL"], name=WORKER)
    blobs = redis.from_url(os.environ["REDIS_URL"])

    async def work(message):
        packet = buspacket_pb2.BusPacket.FromString(message.data)
        job = packet.job_request
        await blobs.set(f"res:{job.job_id}", json.dumps({"headers": message.headers, "trace_id": packet.trace_id}))
        answer = envelope(packet.trace_id)
        answer.job_result.job_id = job.job_id
        answer.job_result.worker_id = WORKER
        answer.job_result.status = job_pb2.JOB_STATUS_SUCCEEDED
        answer.job_result.result_ptr = f"redis://res:{job.job_id}"
        await bus.publish("sys.job.result", answer.SerializeToString())

    await bus.subscribe(f"worker.{WORKER}.jobs", cb=work)
    hello = envelope(WORKER)
    hello.handshake.component_id = WORKER
    hello.handshake.role = handshake_pb2.COMPONENT_ROLE_WORKER
    hello.handshake.supported_versions.append(1)
    hello.handshake.ready_topics.append(TOPIC)
    await bus.publish("sys.handshake", hello.SerializeToString())
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
