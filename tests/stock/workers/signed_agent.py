"""A stock CAP `Agent`, or `run_worker`, with a key of its own, that gives back what it was given.

It signs what it says (`--mode sign`), proves once who it is and shows its session from then on (`--mode trust`), or is
the plain helper that signs (`--mode helper`). In each it believes only the scheduler whose public key it was given.
"""

import argparse
import asyncio
import os
import pathlib

import nats
from cap import Agent, heartbeat_loop, heartbeat_payload, run_worker
from cap.pb.cordum.agent.v1 import job_pb2
from cap.worker_trust import WorkerTrustConfig
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

SCHEDULER = "cordum-scheduler"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=["sign", "trust", "helper"], required=True)
    parser.add_argument("--worker-id", required=True)
    parser.add_argument("--tenant", required=True)
    parser.add_argument("--private-key", type=pathlib.Path, required=True)
    parser.add_argument("--proof-key-id", required=True)
    parser.add_argument("--server-key", type=pathlib.Path, required=True)
    parser.add_argument("--server-key-id", required=True)
    parser.add_argument("--renew-s", type=float, default=30.0)
    return parser.parse_args()


def build_agent(arguments, private_key, server_key) -> Agent:
    if arguments.mode == "sign":
        agent = Agent(
            worker_id=arguments.worker_id, private_key=private_key, public_keys={SCHEDULER: server_key}
        )
    else:
        trust = WorkerTrustConfig(
            worker_id=arguments.worker_id,
            expected_agent_id=arguments.worker_id,
            tenant_id=arguments.tenant,
            audience=SCHEDULER,
            proof_key_id=arguments.proof_key_id,
            proof_private_key=private_key,
            expected_scheduler_id=SCHEDULER,
            scheduler_public_keys={arguments.server_key_id: server_key},
            sdk_version="2.17.0",
        )
        agent = Agent(
            worker_id=arguments.worker_id,
            worker_trust_mode="enforce",
            worker_trust=trust,
            worker_trust_renew_min_interval=arguments.renew_s,
            public_keys={SCHEDULER: server_key},
        )

    @agent.job("job.echo")
    async def echo(_context, payload):
        return payload

    return agent


async def help_out(arguments, private_key, server_key) -> None:
    async def echo(request: job_pb2.JobRequest) -> job_pb2.JobResult:
        return job_pb2.JobResult(job_id=request.job_id, status=job_pb2.JOB_STATUS_SUCCEEDED)

    def beat() -> bytes:
        return heartbeat_payload(
            worker_id=arguments.worker_id, pool="", active_jobs=0, max_parallel=1, cpu_load=0.0
        )

    nats_url = os.environ["NATS_URL"]
    beats = await nats.connect(nats_url, name=f"{arguments.worker_id}-beats")
    await asyncio.gather(
        run_worker(
            nats_url,
            "job.echo",
            echo,
            sender_id=arguments.worker_id,
            private_key=private_key,
            public_keys={SCHEDULER: server_key},
        ),
        heartbeat_loop(beats, beat, interval=0.5, private_key=private_key),
    )


async def serve(arguments) -> None:
    private_key = load_pem_private_key(arguments.private_key.read_bytes(), None)
    server_key = load_pem_public_key(arguments.server_key.read_bytes())
    if arguments.mode == "helper":
        await help_out(arguments, private_key, server_key)
    else:
        await build_agent(arguments, private_key, server_key).run()


if __name__ == "__main__":
    asyncio.run(serve(parse_arguments()))
