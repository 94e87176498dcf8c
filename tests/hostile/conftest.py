"""Fixtures: a server with an admin listener, and an honest tenant that goes on submitting while it is attacked."""

import os
import pathlib
import re

import pytest

from bystander import Bystander
from harness import LISTENERS, Server, show_log

ADMIN = {"admin": re.compile(r"admin on http://(\S+:\d+)")}


@pytest.fixture(scope="session")
def binary():
    path = pathlib.Path(os.environ.get("REVEILLE_BIN", "target/release/reveille")).resolve()
    assert path.is_file(), f"nothing at {path}: build it, or name it in REVEILLE_BIN"
    return str(path)


@pytest.fixture
def settings():
    """What a test that is about a setting overrides."""
    return {}


@pytest.fixture
def server(binary, tmp_path, settings):
    # A tenth of the places, so that a few hundred sockets can take them all.
    server = Server(binary, tmp_path, {"REVEILLE_HTTP_CONNECTIONS_MAX": "200", **settings})
    server.listeners = LISTENERS | ADMIN
    server.addresses = dict.fromkeys(server.listeners, "127.0.0.1:0")
    server.start()
    try:
        yield server
    finally:
        if server.process is not None and server.process.poll() is None:
            server.kill()
        show_log(server.log)


@pytest.fixture
def bystander(server):
    return Bystander(server, server.create_key("honest", "read", "write"))
