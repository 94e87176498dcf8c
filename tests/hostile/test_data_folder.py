"""Somebody else on the machine, and somebody with a copy of the database."""

import contextlib
import hashlib
import hmac
import http.client
import json
import secrets
import sqlite3
import stat
import time


def test_an_existing_data_folder_is_closed_to_others_on_the_machine(server):
    server.stop()
    server.data.chmod(0o755)
    server.start()
    assert stat.S_IMODE(server.data.stat().st_mode) == 0o700
    exposed = [path.name for path in server.data.iterdir() if "key" in path.name and path.stat().st_mode & 0o077]
    assert not exposed, exposed


def test_a_copy_of_the_database_is_not_enough_to_forge_a_session(server):
    """Hashes of keys once were: the cookie's token was made with the hash and nothing else."""
    with contextlib.closing(sqlite3.connect(server.data / "reveille.db")) as copy:
        keys = copy.execute("SELECT id, hash, record FROM keys").fetchall()
    operators = [(key, bytes(digest)) for key, digest, record in keys if "admin" in json.loads(record)["scopes"]]
    assert operators
    session, end = secrets.token_hex(16), int(time.time() * 1000) + 3_600_000
    words = f"console session {session} until {end}".encode()
    secret = hashlib.sha256(b"reveille session secret " + server.key.encode()).digest()
    for key, digest in operators:
        name = f"{key}.{session}.{end}"
        assert opens(server, f"{name}.{hmac_hex(secret, digest + words)}") == 200, "cookies are made in another way now"
        for guess in [digest, b"", bytes(32), hashlib.sha256(b"reveille session secret " + digest).digest()]:
            for message in [words, digest + words]:
                token = hmac_hex(guess, message)
                assert opens(server, f"{name}.{token}") == 303, "whoever has the file is an operator"


def hmac_hex(key, message):
    return hmac.new(key, message, hashlib.sha256).hexdigest()


def opens(server, session):
    connection = http.client.HTTPConnection(*server.address("http"), timeout=10)
    with contextlib.closing(connection):
        connection.request("GET", "/ui/jobs", headers={"Cookie": f"reveille_session={session}"})
        return connection.getresponse().status
