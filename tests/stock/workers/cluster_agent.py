"""A stock CAP `Agent` on a Redis Cluster: the SDK's own store speaks to one Redis, so it is handed another."""

import asyncio
import os

from cap import Agent
from redis.asyncio.cluster import RedisCluster


class ClusterBlobs:
    def __init__(self, url):
        self.client = RedisCluster.from_url(url)

    async def get(self, key):
        return await self.client.get(key)

    async def set(self, key, data):
        await self.client.set(key, data)

    async def close(self):
        await self.client.aclose()


async def main():
    agent = Agent(worker_id="cluster-agent", store=ClusterBlobs(os.environ["REDIS_URL"]))

    @agent.job("job.echo")
    async def echo(_context, payload):
        return payload

    await agent.run()


asyncio.run(main())
