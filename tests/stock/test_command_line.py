"""What scripts rely on: exit codes, and a standard error without anything that moves."""

import json
import os
import pty
import re
import subprocess

import pytest

WORKFLOW = {"id": "w", "name": "w", "steps": {"a": {"type": "transform", "input": "${1 / input.n}"}}}
NOBODY = ("job", "submit", "--topic", "job.nobody", "{}")


@pytest.fixture
def saved(server):
    assert server.call("POST", "/api/v1/workflows", WORKFLOW)[0] == 201
    return server


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("job", "list"), 0, ""),
        (("run", "start", "w", "--wait", "--input", '{"n": 1}'), 0, ""),
        (("job", "get", "nothing"), 1, r"\[404 not_found\]"),
        (("job", "submit", "--topic", "not-a-topic"), 1, r"\[400 "),
        (("job", "list", "--key", "vk_wrong"), 1, r"\[401 "),
        (("job", "list", "--url", "http://127.0.0.1:1"), 1, "does not answer"),
        (("policy", "check", "/no/such/file"), 1, "reading /no/such/file"),
        ((*NOBODY, "--label", "without-a-value"), 2, "it is not key=value"),
        ((*NOBODY, "--timeout", "soon"), 2, "invalid value"),
        (("job", "submit"), 2, "--topic"),
        (("job", "frobnicate"), 2, "unrecognized subcommand"),
        ((*NOBODY, "--wait", "--deadline-ms", "200"), 3, "ended as TIMEOUT"),
        (("run", "start", "w", "--wait", "--input", '{"n": 0}'), 3, "ended as failed"),
        (("workflow", "dry-run", "w", "--input", '{"n": 0}'), 3, "it would fail"),
        ((*NOBODY, "--wait", "--timeout", "1"), 4, "has not ended after 1 s"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_exit_codes_are_what_the_page_says(saved, words, code, said):
    # What the test names itself counts more than what the harness adds before it.
    own = {word for word in words if word.startswith("--")}
    given = [("--url", saved.http_url), ("--key", saved.key)]
    added = [word for flag, value in given if flag not in own for word in (flag, value)]
    if code == 2 or words[0] == "policy":
        added = []

    done = subprocess.run([saved.binary, *words, *added], capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert re.search(said, done.stderr), done.stderr


def test_the_help_and_the_man_page_list_the_exit_codes(binary, tmp_path):
    shown = subprocess.run([binary, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
    subprocess.run([binary, "man", str(tmp_path)], capture_output=True, timeout=60, check=True)
    page = (tmp_path / "reveille.1").read_text().replace("\\-", "-")

    for text in (shown, page):
        assert "Exit codes:" in text
        assert re.search(r"\b4  The job that was waited for has not ended within --timeout", text), text


def test_a_command_that_takes_long_moves_on_a_terminal_and_nowhere_else(server):
    command = [server.binary, *NOBODY, "--wait", "--timeout", "2", "--url", server.http_url, "--key", server.key]

    piped = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    theirs, ours = pty.openpty()
    with os.fdopen(theirs, "rb", buffering=0) as terminal:
        with os.fdopen(ours, "wb") as end:
            watched = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=end, env={**os.environ, "TERM": "xterm"}, timeout=60, check=False
            )
        shown = read_all(terminal)

    assert (piped.returncode, watched.returncode) == (4, 4)
    assert piped.stderr.count("\n") == 1 and "\r" not in piped.stderr and "\x1b" not in piped.stderr
    assert watched.stdout == b""
    assert re.search(rb"\ds job [0-9a-f-]{36}", shown), shown
    assert b"has not ended after 2 s" in shown.splitlines()[-1], "the line that moved is gone"


def read_all(terminal):
    """A terminal whose other end is closed says so with an error."""
    shown = b""
    while True:
        try:
            some = terminal.read(65536)
        except OSError:
            return shown
        if not some:
            return shown
        shown += some


def test_what_is_piped_is_data_alone(server):
    done = server.cli("audit", "verify", "--json")

    assert done.returncode == 0 and done.stderr == "", done
    assert json.loads(done.stdout)["status"] == "ok"
