"""A stock voice agent: it registers with VoiceGateway's own package and takes calls when it is told to.

Nothing here knows of Reveille: the collector, the key and the agent's id come from the package's own variables. A
call is a session that `voicegateway.attach` watches, as with LiveKit: it makes the agent busy until it is closed.
What to do comes in lines: `open` a call, `close` one.
"""

import argparse
import asyncio
import sys

import voicegateway


class Session:
    """As much of an `AgentSession` as `attach` needs: something that can be listened to."""

    def __init__(self):
        self.listeners = {}

    def on(self, event, callback=None):
        self.listeners.setdefault(event, []).append(callback)
        return callback

    def close(self):
        for callback in self.listeners.get("close", []):
            callback()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", default="reception")
    parser.add_argument("--project", default="default")
    parser.add_argument("--interval-s", type=float, help="the package's own 15 seconds unless told")
    return parser.parse_args()


async def serve(arguments: argparse.Namespace) -> None:
    rhythm = {} if arguments.interval_s is None else {"interval": arguments.interval_s}
    voicegateway.register_worker(arguments.name, project=arguments.project, **rhythm)
    lines = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(lines)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    sessions = []
    async for line in lines:
        if line.strip() == b"open":
            session = Session()
            voicegateway.attach(session, policy="off")
            sessions.append(session)
        elif line.strip() == b"close":
            sessions.pop().close()


if __name__ == "__main__":
    asyncio.run(serve(parse_arguments()))
