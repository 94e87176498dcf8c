"""Servers to measure: one alone, or several on Redis, NATS and PostgreSQL. They listen on loopback only and end,
by the id they were started under, when the measurement does.
"""

import contextlib
import pathlib
import tempfile

from engines import Engines, Nats, end, running_replicas
from harness import Server
from rig import free_address

# Nobody dies while we look, and what is written every few seconds is measured by itself.
CALM = {"RUST_LOG": "warn", "REVEILLE_FLEET_CAP_TTL_SECONDS": "900", "REVEILLE_FLEET_SNAPSHOT_INTERVAL": "1h"}


class CountingNats(Nats):
    """One that also says how much went through it."""

    def __init__(self, folder):
        super().__init__(folder)
        self.page_port = int(free_address().rpartition(":")[2])

    def command(self):
        return [*super().command(), "-m", str(self.page_port)]


class Stand:
    def __init__(self, folder, servers, engines=None):
        self.folder = folder
        self.servers = servers
        self.engines = engines

    @property
    def first(self):
        return self.servers[0]

    @property
    def nats_port(self):
        return int(self.first.nats_url.rsplit(":", 1)[1])


@contextlib.contextmanager
def alone(binary, **settings):
    with folder() as place, contextlib.ExitStack() as stack:
        server = Server(binary, place, CALM | settings)
        stack.callback(end, server)
        server.start()
        yield Stand(place, [server])


@contextlib.contextmanager
def together(binary, count, **settings):
    with folder() as place, contextlib.ExitStack() as stack:
        engines = Engines(place)
        engines.nats = CountingNats(place / "nats")
        for engine in engines.all():
            engine.start()
            stack.callback(engine.kill)
        servers = stack.enter_context(running_replicas(binary, place, engines, count, CALM | settings))
        yield Stand(place, servers, engines)


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory(prefix="reveille-capacity-", ignore_cleanup_errors=True) as path:
        yield pathlib.Path(path)
