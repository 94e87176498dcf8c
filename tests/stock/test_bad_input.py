"""What strangers send wrongly: a clear answer for them, and nothing changes for anybody else.

One server takes all of it in a row, with one honest agent at work on it throughout.
"""

import json
import select

import pytest

from dial import dial, dial_nats, dial_resp, read_until
from harness import running_server, running_worker

EARLY_ANSWER_S = 1
BODY_MAX = 2 * 1024 * 1024
LABELS_MAX = 50


@pytest.fixture(scope="module")
def server(binary, tmp_path_factory):
    directory = tmp_path_factory.mktemp("bad-input")
    with (
        running_server(binary, directory) as server,
        running_worker("echo_agent.py", server, directory, "--worker-id", "agent-1", "--max-parallel", "4"),
    ):
        server.wait_for_workers("agent-1")
        yield server


def assert_refused(answer, status, word=""):
    """The one envelope of every refusal; `word` is what its text must name."""
    got_status, envelope = answer
    assert got_status == status, answer
    assert envelope["status"] == status
    assert envelope["code"] and isinstance(envelope["code"], str)
    assert envelope["error"] and word in envelope["error"]


def assert_echoes(server):
    job = server.ended_job(server.submit("job.echo", {"still": "here"}))
    assert (job["state"], job["result"]) == ("SUCCEEDED", {"still": "here"})


@pytest.mark.parametrize("key", ["wrong", "vk_" + "0" * 40, ""], ids=["wrong", "unknown", "none"])
def test_a_wrong_key_is_refused(server, key):
    assert_refused(server.call("GET", "/api/v1/jobs", key=key), 401)
    assert_refused(server.call("POST", "/api/v1/jobs", {"topic": "job.echo", "context": {}}, key=key), 401)


def test_the_command_line_says_that_the_key_is_wrong(server):
    done = server.cli("job", "submit", "--topic", "job.echo", '{"x":1}', key="wrong")

    assert done.returncode != 0
    assert done.stdout == ""
    assert "key" in done.stderr


@pytest.mark.parametrize("body", [b"{", b"", b"[1,2]", b'{"topic":"job.echo"', b"\xff\xfe"])
def test_a_body_that_is_no_json_object_is_refused(server, body):
    assert_refused(server.call("POST", "/api/v1/jobs", body), 400)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("labels", {f"label-{number}": "x" for number in range(LABELS_MAX + 1)}),
        ("labels", {"k" * 257: "x"}),
        ("labels", {"k": "v" * 4097}),
        ("labels", "not a map"),
        ("topic", "no-such-prefix"),
        ("topic", "job." + "x" * 256),
        ("priority", "whenever"),
        ("deadline_ms", -1),
    ],
)
def test_a_field_out_of_bounds_is_refused_by_name(server, field, value):
    body = {"topic": "job.echo", "context": {}, field: value}

    assert_refused(server.call("POST", "/api/v1/jobs", body), 400, field)


def test_a_body_over_the_limit_is_refused(server):
    body = json.dumps({"topic": "job.echo", "context": "x" * BODY_MAX}).encode()
    head = (
        "POST /api/v1/jobs HTTP/1.1\r\nHost: stranger\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nX-API-Key: {server.key}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with dial(server, "http") as connection:
        connection.sendall(head.encode())
        # The announced length suffices for an answer; what is sent into a closing connection could destroy it.
        answered, _, _ = select.select([connection], [], [], EARLY_ANSWER_S)
        if not answered:
            connection.sendall(body)
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk

    head, _, text = answer.partition(b"\r\n\r\n")
    status = int(head.split()[1])
    assert_refused((status, json.loads(text)), 413)


@pytest.mark.parametrize("path", ["", "/explain"])
def test_an_unknown_job_is_not_found(server, path):
    assert_refused(server.call("GET", f"/api/v1/jobs/no-such-job{path}"), 404)


def test_an_unknown_job_cannot_be_cancelled(server):
    assert_refused(server.call("POST", "/api/v1/jobs/no-such-job/cancel", {}), 404)


@pytest.mark.parametrize(
    "line",
    [
        b"GARBAGE all over\r\n",
        b"PUB\r\n",
        b"PUB job.echo minus-one\r\n",
        b"SUB only-a-subject\r\n",
        b"\x00\x01\x02\r\n",
        b"PUB job.echo 99999999999\r\n",
        b"SUB " + b"x" * 5000 + b"\r\n",
    ],
    ids=["unknown", "no-arguments", "no-size", "no-sid", "binary", "oversized", "long"],
)
def test_garbage_at_the_nats_door_is_answered_and_others_go_on(server, line):
    with dial_nats(server) as stranger:
        stranger.sendall(line)
        assert read_until(stranger, b"\r\n").startswith(b"-ERR '")

    assert_echoes(server)


@pytest.mark.parametrize("packet", [b"", b"\xff\xff\xff", b"\x0a\x7fshort"], ids=["empty", "garbage", "cut"])
@pytest.mark.parametrize("subject", [b"sys.heartbeat", b"sys.handshake", b"sys.job.submit", b"sys.job.result"])
def test_a_packet_that_is_none_is_dropped(server, subject, packet):
    with dial_nats(server) as stranger:
        stranger.sendall(b"PUB %s %d\r\n%s\r\nPING\r\n" % (subject, len(packet), packet))
        read_until(stranger, b"PONG\r\n")

    assert server.workers() == {"agent-1"}
    assert_echoes(server)


def test_half_a_frame_and_gone(server):
    with dial_nats(server) as stranger:
        stranger.sendall(b"PUB job.echo 1000\r\nonly this")
    with dial_resp(server) as stranger:
        stranger.sendall(b"*3\r\n$3\r\nSET\r\n$6\r\nctx:")

    assert_echoes(server)


@pytest.mark.parametrize(
    "command",
    [
        b"*1\r\n$8\r\nFLUSHALL\r\n",
        b"*3\r\n$3\r\nSET\r\n$9\r\nnot-yours\r\n$1\r\n1\r\n",
        b"*1\r\n$3\r\nGET\r\n",
    ],
    ids=["unknown", "foreign-key", "no-arguments"],
)
def test_a_refused_command_at_the_resp_door_leaves_the_connection_open(server, command):
    with dial_resp(server) as stranger:
        stranger.sendall(command)
        assert read_until(stranger, b"\r\n").startswith(b"-")
        stranger.sendall(b"*1\r\n$4\r\nPING\r\n")
        assert read_until(stranger, b"\r\n") == b"+PONG\r\n"


@pytest.mark.parametrize(
    "frame",
    [b"*1\r\n$nine\r\n", b"*1\r\nPING\r\n", b"*99999999\r\n", b"*1\r\n$99999999999\r\n"],
    ids=["no-length", "no-bulk", "many", "oversized"],
)
def test_a_broken_resp_frame_is_answered_and_others_go_on(server, frame):
    with dial_resp(server) as stranger:
        stranger.sendall(frame)
        assert read_until(stranger, b"\r\n").startswith(b"-ERR")

    assert_echoes(server)
