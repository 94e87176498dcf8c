"""A server under a policy for the whole session, and every client twice: the plain one, and the one for asyncio."""

import asyncio
import inspect
import os
import pathlib
import secrets
import threading

import pytest
from harness import running_server, running_worker

from reveille import AsyncClient, Client

KINDS = {"sync": Client, "async": AsyncClient}

# So long that no agent beats by itself while a test looks.
SETTINGS = {"REVEILLE_FLEET_VOICEGATEWAY_TTL_SECONDS": "3600"}
POLICY = """
version: v1
rules:
  - id: no-prod
    match: {labels: {env: prod}}
    decision: deny
    reason: not in production
    remediations: [{id: stage, title: Use staging, add_labels: {env: staging}}]
  - {id: dear, when: has(job.labels.amount), decision: require_approval}
  - id: flood
    match: {topics: [job.flood]}
    velocity: {max_requests: 1, window_seconds: 3600, key: labels.who}
    decision: throttle
    reason: one is enough
  - {id: rest, match: {topics: ["job.*"]}, decision: allow}
output_policy: {enabled: true, fail_mode: closed}
output_rules:
  - {id: leak, match: {topics: [job.echo], scanners: [secret]}, decision: quarantine, reason: it says too much}
"""


@pytest.fixture(scope="session")
def binary():
    path = pathlib.Path(os.environ.get("REVEILLE_BIN", "target/release/reveille")).resolve()
    assert path.is_file(), f"no server at {path}: build it, or name it in REVEILLE_BIN"
    return str(path)


@pytest.fixture(scope="session")
def server(binary, tmp_path_factory):
    """A server with one stock agent, `echo-1`, that gives back what it is given."""
    directory = tmp_path_factory.mktemp("shared")
    policy = directory / "safety.yaml"
    policy.write_text(POLICY)
    with (
        running_server(binary, directory, SETTINGS, flags=("--policy", str(policy))) as server,
        running_worker("echo_agent.py", server, directory, "--worker-id", "echo-1"),
    ):
        server.wait_for_workers("echo-1")
        yield server


@pytest.fixture
def own_server(binary, tmp_path):
    """One that a test may kill."""
    with running_server(binary, tmp_path) as server:
        yield server


@pytest.fixture(params=KINDS)
def connect(request):
    """Makes clients of one kind. Whatever the kind, they are used like plain ones."""
    loop = None if request.param == "sync" else RunningLoop()
    opened = []

    def connect(*arguments, **named):
        client = KINDS[request.param](*arguments, **named)
        opened.append(client if loop is None else Blocking(client, loop))
        return opened[-1]

    yield connect
    for client in opened:
        client.close() if loop is None else client.aclose()
    if loop is not None:
        loop.close()


@pytest.fixture
def client(connect, server):
    return connect(server.http_url, server.key)


@pytest.fixture
def other(connect, server):
    """Somebody else of the same tenant: nobody decides about jobs of their own."""
    return connect(server.http_url, server.create_key("default", "read", "write"))


@pytest.fixture
def topic():
    """Nobody else's."""
    return "job.t" + secrets.token_hex(6)


class RunningLoop:
    """An event loop in a thread."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def run(self, function, *arguments, **named):
        """Calls it there, and waits for what it gives if that has to be waited for."""

        async def called():
            result = function(*arguments, **named)
            return await result if inspect.isawaitable(result) else result

        return asyncio.run_coroutine_threadsafe(called(), self.loop).result()

    def close(self):
        self.run(self.loop.shutdown_asyncgens)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


class Blocking:
    """Something of the asyncio client, used from plain code."""

    def __init__(self, inner, loop):
        self.inner = inner
        self.loop = loop

    def __repr__(self):
        return repr(self.inner)

    def __getattr__(self, name):
        value = getattr(self.inner, name)
        if not inspect.isroutine(value):
            return self.wrapped(value)
        return lambda *arguments, **named: self.wrapped(self.loop.run(value, *arguments, **named))

    def wrapped(self, value):
        if hasattr(value, "__anext__"):
            return self.iterated(value)
        return Blocking(value, self.loop) if type(value).__module__.startswith("reveille._async") else value

    def iterated(self, items):
        try:
            while True:
                yield self.loop.run(items.__anext__)
        except StopAsyncIteration:
            return
        finally:
            self.loop.run(items.aclose)

    def __enter__(self):
        return self.wrapped(self.loop.run(self.inner.__aenter__))

    def __exit__(self, *error):
        self.loop.run(self.inner.__aexit__, *error)
