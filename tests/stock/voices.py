"""Stock voice agents in processes of their own, and beats by hand."""

import contextlib
import subprocess
import sys
import time

import mode
from harness import WORKERS, show_log


class VoiceAgent:
    """`voicegateway.register_worker`, told by nothing but the package's own variables where to go."""

    def __init__(self, server, directory, key, agent_id, *arguments, variables=None):
        self.log = directory / f"{agent_id}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(WORKERS / "voice_agent.py"), *arguments],
                env={
                    "VOICEGW_COLLECTOR_URL": server.http_url + "/",
                    "VOICEGW_API_KEY": key,
                    "VOICEGW_AGENT_ID": agent_id,
                    **mode.client_variables(),
                    **(variables or {}),
                },
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )

    def tell(self, word):
        self.process.stdin.write(word.encode() + b"\n")
        self.process.stdin.flush()

    def kill(self):
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(OSError):
            self.process.stdin.close()


@contextlib.contextmanager
def running_voice_agent(*arguments, **more):
    agent = VoiceAgent(*arguments, **more)
    try:
        yield agent
    finally:
        agent.kill()
        show_log(agent.log)


def beat_of(agent_id, **changes):
    """The contract's own example of a beat."""
    beat = {
        "agent_id": agent_id,
        "agent_name": "myvoiceagents",
        "status": "idle",
        "active_sessions": 0,
        "version": "0.13.0",
        "project": "mahimai-realty",
        "tenant_id": None,
        "region": "iad",
        "host": "worker-host-1",
        "started_at": time.time() - 60,
        "ts": time.time(),
    }
    return beat | changes


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


def send_beat(server, key, beat):
    return server.exchange("POST", "/v1/agents/heartbeat", beat, bearer(key))


def roster(server, key):
    """`GET /v1/agents` as rows by agent id; two rows of one agent are a fault of their own."""
    answer = server.exchange("GET", "/v1/agents", headers=bearer(key))
    assert answer.status == 200, answer
    rows = answer.json()["workers"]
    by_id = {row["agent_id"]: row for row in rows}
    assert len(by_id) == len(rows), rows
    return by_id
