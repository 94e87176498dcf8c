"""Many CAP workers in one process, on raw sockets, each with a connection of its own that it opens again at once.

They beat on their own clocks, as workers do that know nothing of a restart, and do every job at once. What happens is
said in lines of JSON with the machine's monotonic time: who connected, and which job came to whom.
"""

import argparse
import asyncio
import contextlib
import json
import time

from cap.pb.cordum.agent.v1 import buspacket_pb2, heartbeat_pb2, job_pb2

RECONNECT_S = 0.1
PROTOCOL_VERSION = 1


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", required=True)
    parser.add_argument("--workers", type=int, default=200)
    parser.add_argument("--pools", type=int, default=50)
    parser.add_argument("--beat-s", type=float, default=5.0)
    return parser.parse_args()


def say(**what) -> None:
    print(json.dumps({"at": time.monotonic(), **what}), flush=True)


class Member:
    def __init__(self, number: int, arguments: argparse.Namespace):
        self.id = f"warm-worker-{number:03}"
        self.pool = f"warm-{number % arguments.pools}"
        self.host, self.port = arguments.address.rsplit(":", 1)
        self.beat_s = arguments.beat_s
        # Their beats are spread over the interval, as in life.
        self.next_beat = time.monotonic() + arguments.beat_s * number / arguments.workers

    async def live(self) -> None:
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self.work()
            await asyncio.sleep(RECONNECT_S)

    async def work(self) -> None:
        reader, writer = await asyncio.open_connection(self.host, int(self.port))
        beats = None
        try:
            hello = f'CONNECT {{"verbose":false,"name":"{self.id}"}}\r\nSUB worker.{self.id}.jobs 1\r\nPING\r\n'
            writer.write(hello.encode())
            beats = asyncio.create_task(self.beat(writer))
            while line := await reader.readline():
                if line.startswith(b"PING"):
                    writer.write(b"PONG\r\n")
                elif line.startswith(b"PONG"):
                    say(connected=self.id, pool=self.pool)
                elif line.startswith(b"MSG "):
                    length = int(line.split()[-1])
                    packet = await reader.readexactly(length + 2)
                    self.answer(writer, packet[:length])
        finally:
            if beats is not None:
                beats.cancel()
            writer.close()

    async def beat(self, writer: asyncio.StreamWriter) -> None:
        while True:
            await asyncio.sleep(max(0.0, self.next_beat - time.monotonic()))
            while self.next_beat <= time.monotonic():
                self.next_beat += self.beat_s
            beat = heartbeat_pb2.Heartbeat(worker_id=self.id, pool=self.pool, max_parallel_jobs=100)
            self.publish(writer, "sys.heartbeat", heartbeat=beat)

    def answer(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        job = buspacket_pb2.BusPacket.FromString(data).job_request
        if not job.job_id:
            return
        say(job=job.job_id, worker=self.id)
        result = job_pb2.JobResult(
            job_id=job.job_id, status=job_pb2.JOB_STATUS_SUCCEEDED, worker_id=self.id, dispatch=job.dispatch
        )
        self.publish(writer, "sys.job.result", job_result=result)

    def publish(self, writer: asyncio.StreamWriter, subject: str, **payload) -> None:
        packet = buspacket_pb2.BusPacket(
            trace_id=self.id, sender_id=self.id, protocol_version=PROTOCOL_VERSION, **payload
        )
        packet.created_at.GetCurrentTime()
        data = packet.SerializeToString()
        writer.write(f"PUB {subject} {len(data)}\r\n".encode() + data + b"\r\n")


async def serve(arguments: argparse.Namespace) -> None:
    await asyncio.gather(*(Member(number, arguments).live() for number in range(arguments.workers)))


if __name__ == "__main__":
    asyncio.run(serve(parse_arguments()))
