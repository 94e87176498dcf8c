"""A data file that is not what it should be, or not free: said in words, and left exactly as it was."""

import contextlib
import os
import random
import shutil
import socket
import sqlite3
import subprocess

import pytest

from harness import LISTENERS
from rig import assert_intact, ending_server, free_address

REFUSAL_S_MAX = 20
HEADER_LEN = 100
NAMED_LEN = 16


@pytest.fixture(scope="module")
def data_file(binary, tmp_path_factory):
    """A real one, with some jobs in it."""
    directory = tmp_path_factory.mktemp("healthy")
    with ending_server(binary, directory) as server:
        server.start()
        for number in range(50):
            server.submit("job.echo", {"number": number, "text": "x" * 4000})
        assert server.stop() == 0
    path = server.data / "reveille.db"
    assert_intact(path)
    return path


def with_random_header(path):
    overwrite(path, 0, random.Random(1).randbytes(HEADER_LEN))


def with_random_header_behind_its_name(path):
    overwrite(path, NAMED_LEN, random.Random(2).randbytes(HEADER_LEN - NAMED_LEN))


def with_random_middle(path):
    overwrite(path, path.stat().st_size // 2, random.Random(3).randbytes(3 * 4096))


def cut_in_half(path):
    os.truncate(path, path.stat().st_size // 2 // 4096 * 4096)


def cut_within_a_page(path):
    os.truncate(path, path.stat().st_size - 1000)


def cut_within_the_header(path):
    os.truncate(path, HEADER_LEN // 2)


def of_a_newer_version(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript("PRAGMA user_version = 999; PRAGMA wal_checkpoint(TRUNCATE);")


def of_another_program(path):
    path.unlink()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE jobs (title TEXT); INSERT INTO jobs VALUES ('baker');")


def of_text(path):
    path.write_text("This was never a database.\n" * 1000)


def overwrite(path, at, data):
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (with_random_header, "not a data file of Reveille"),
        (with_random_header_behind_its_name, "not a data file of Reveille"),
        (with_random_middle, "damaged"),
        (cut_in_half, "damaged"),
        (cut_within_a_page, "damaged"),
        (cut_within_the_header, "not a data file of Reveille"),
        (of_a_newer_version, "a newer version of Reveille"),
        (of_another_program, "another program"),
        (of_text, "no SQLite database"),
    ],
)
def test_a_spoilt_data_file_is_refused_and_left_alone(binary, data_file, tmp_path, spoil, words):
    path = tmp_path / "data" / "reveille.db"
    path.parent.mkdir()
    shutil.copy(data_file, path)
    spoil(path)
    before = path.read_bytes()

    said = refusal(binary, path.parent)

    assert str(path) in said
    assert words in said
    assert path.read_bytes() == before


def test_a_second_server_on_one_data_folder_is_refused(binary, server):
    job_id = server.submit("job.echo", {"number": 1})

    said = refusal(binary, server.data)

    assert str(server.data / "reveille.db") in said
    assert "another process" in said
    assert server.is_ready()
    assert server.job(job_id)["context"] == {"number": 1}
    server.submit("job.echo", {"number": 2})
    assert server.stop() == 0


@pytest.mark.parametrize("listener", LISTENERS)
def test_a_taken_port_is_named_with_the_flag_for_another(binary, tmp_path, listener):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refusal(binary, tmp_path / "data", **{listener: f"127.0.0.1:{port}"})

    assert f"127.0.0.1:{port}" in said
    assert f"--{listener}" in said
    assert not (tmp_path / "data").exists(), "a server that cannot be reached made a data folder"


def refusal(binary, data, **addresses):
    """What a server says that will not start."""
    command = [binary, "serve", "--data", str(data)]
    for listener in LISTENERS:
        command += [f"--{listener}", addresses.get(listener) or free_address()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=REFUSAL_S_MAX, check=False)
    assert done.returncode not in (0, 101) and done.returncode > 0, (done.returncode, done.stderr)
    assert "panicked" not in done.stderr
    assert done.stdout == ""
    return done.stderr
