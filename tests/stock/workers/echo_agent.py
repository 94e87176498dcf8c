"""A stock CAP `Agent` that gives back what it was given.

Nothing here knows of Reveille: the servers come from `NATS_URL` and `REDIS_URL`, as the SDK reads them by itself.
Words in the input make the handler misbehave on request: `fail` raises, `sleep_s` holds the job for a while,
`letters` gives back a text of that length instead.
"""

import argparse
import asyncio

from cap import Agent


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker-id", default="echo-agent")
    parser.add_argument("--topic", default="job.echo")
    parser.add_argument("--max-parallel", type=int, default=1)
    return parser.parse_args()


def build_agent(arguments: argparse.Namespace) -> Agent:
    agent = Agent(worker_id=arguments.worker_id, max_parallel=arguments.max_parallel)

    @agent.job(arguments.topic)
    async def echo(_context, payload):
        wishes = payload if isinstance(payload, dict) else {}
        if wishes.get("fail"):
            raise RuntimeError("the job asked for it")
        await asyncio.sleep(wishes.get("sleep_s", 0))
        return "x" * wishes["letters"] if "letters" in wishes else payload

    return agent


if __name__ == "__main__":
    asyncio.run(build_agent(parse_arguments()).run())
