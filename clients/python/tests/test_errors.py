"""What goes wrong is told in a class, a code and words, and never with the key in it."""

import http.server
import pickle
import secrets
import socket
import threading

import pytest

from reveille import (
    BadRequest,
    Conflict,
    Forbidden,
    NotFound,
    Retry,
    ReveilleError,
    Unauthorized,
    Unavailable,
    UnexpectedAnswer,
)
from reveille.models import CreatedKey

ONCE = Retry(tries_max=1)

REFUSED = [
    # what is asked, the class, its status and code, the field
    (lambda client: client.jobs.submit(topic="nope", context={}), BadRequest, 400, "invalid_request", "topic"),
    (lambda client: client.jobs.submit(topic="job.echo"), BadRequest, 400, "invalid_request", None),
    (lambda client: client.jobs.submit(context={}, priority="odd"), BadRequest, 400, "invalid_request", "priority"),
    (lambda client: client.jobs.submit(context={}, labels=["a"]), BadRequest, 400, "invalid_request", "labels"),
    (lambda client: client.jobs.get("nope"), NotFound, 404, "not_found", None),
    (lambda client: client.jobs.get("a/b?c#d"), NotFound, 404, "not_found", None),
    (lambda client: client.jobs.wait("nope"), NotFound, 404, "not_found", None),
    (lambda client: client.jobs.cancel("nope"), NotFound, 404, "not_found", None),
    (lambda client: next(client.jobs.list(state="odd")), BadRequest, 400, "invalid_request", "state"),
    (lambda client: client.dead_letters.retry("nope"), NotFound, 404, "not_found", None),
    (lambda client: client.approvals.approve("nope"), NotFound, 404, "not_found", None),
    (lambda client: client.workers.get("nope"), NotFound, 404, "not_found", None),
    (lambda client: next(client.workers.list(contract="odd")), BadRequest, 400, "invalid_request", "contract"),
    (lambda client: client.workflows.get("nope"), NotFound, 404, "not_found", None),
    (lambda client: client.workflows.save({"id": "empty"}), BadRequest, 400, None, None),
    (lambda client: client.runs.start("nope"), NotFound, 404, "not_found", None),
    (lambda client: next(client.runs.timeline("nope")), NotFound, 404, "not_found", None),
    (lambda client: next(client.events(kinds="odd")), BadRequest, 400, "invalid_request", "kinds"),
    (lambda client: next(client.events(kinds=["job", "odd"])), BadRequest, 400, "invalid_request", "kinds"),
    (lambda client: client.call("GET", "/api/v1/nowhere", object), NotFound, 404, "no_such_path", None),
    (lambda client: client.call("PUT", "/api/v1/jobs", object), ReveilleError, 405, "method_not_allowed", None),
]


@pytest.mark.parametrize("row", REFUSED)
def test_what_is_refused_is_told_in_a_class_a_code_and_words(client, row):
    ask, kind, status, code, field = row
    with pytest.raises(ReveilleError) as refused:
        ask(client)
    error = refused.value
    assert (type(error), error.status, error.code) == (kind, status, code or error.code)
    assert error.message and str(error) == f"{error.code}: {error.message}"
    assert field is None or error.field == field


def test_a_job_that_nobody_was_asked_about_cannot_be_approved(client, other, topic):
    job_id = client.jobs.submit(topic=topic, context={}).job_id
    with pytest.raises(Conflict) as refused:
        other.approvals.approve(job_id)
    assert refused.value.code == "approval_not_actionable"


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_would_lead_elsewhere_is_not_asked_for(client, name):
    for ask in (client.jobs.get, client.runs.cancel, client.workflows.delete, client.workers.drain):
        with pytest.raises(ValueError):
            ask(name)


def test_a_key_that_is_wrong_or_may_not_is_told_apart(connect, server):
    with pytest.raises(Unauthorized):
        connect(server.http_url, "vk_" + secrets.token_hex(20)).jobs.get("x")
    with pytest.raises(Unauthorized):
        connect(server.http_url).presence.beat(agent_id="a", agent_name="a")
    with pytest.raises(Forbidden) as refused:
        connect(server.http_url, server.create_key("default", "ingest")).jobs.submit(topic="job.echo", context={})
    assert refused.value.more["reason"] == "key_scope_insufficient"
    with pytest.raises(Forbidden):
        connect(server.http_url, server.create_key("default", "read"), tenant="acme").jobs.get("x")
    padded = connect(server.http_url + "/", f" {server.key}\n")
    assert padded.call("GET", "/api/v1/pools", object)["items"]


@pytest.mark.parametrize("url", ["", "localhost:8080", "ftp://host", "http://", "http://ann:hunter2@host"])
def test_an_address_that_is_none_is_refused_and_not_repeated(connect, url):
    with pytest.raises(ValueError) as refused:
        connect(url, "vk_1")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("key", ["", "vk_hunter2\nX-Tenant-ID: acme", "vk_hunter2\x00", "vk_hunter2ü"])
def test_a_key_that_no_header_can_have_is_refused_and_not_repeated(connect, key):
    with pytest.raises(ValueError) as refused:
        connect("http://127.0.0.1:1", key)
    assert "hunter2" not in str(refused.value)


def test_a_server_that_is_not_there_is_unavailable(connect):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    client = connect(f"http://127.0.0.1:{port}", "vk_1", retry=ONCE)
    for ask in (lambda: client.jobs.get("x"), lambda: next(client.events())):
        with pytest.raises(Unavailable) as failed:
            ask()
        assert (failed.value.status, failed.value.code) == (None, "unreachable")


def test_a_server_that_says_nothing_is_not_waited_for_longer_than_asked(connect):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = connect(f"http://127.0.0.1:{silent.getsockname()[1]}", "vk_1", timeout=0.05, retry=ONCE)
        with pytest.raises(Unavailable) as failed:
            client.jobs.get("x")
    assert (failed.value.status, failed.value.code) == (None, "timeout")


class SomethingElse(http.server.BaseHTTPRequestHandler):
    """Not Reveille: a page, a redirect, an error in words of its own, and JSON of another shape."""

    def do_GET(self):
        status, body = {
            "/api/v1/jobs/page": (200, b"<html>"),
            "/api/v1/jobs/moved": (302, b""),
            "/api/v1/jobs/broken": (500, b"<html>"),
            "/api/v1/jobs/away": (502, b"<html>"),
            "/api/v1/jobs/shape": (200, b'{"id": 1}'),
            "/api/v1/jobs/list": (200, b"[]"),
        }[self.path]
        self.send_response(status)
        self.send_header("Location", "http://127.0.0.1:1/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def something_else():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), SomethingElse) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize(
    ("job_id", "kind", "status"),
    [
        ("page", UnexpectedAnswer, 200),
        ("moved", UnexpectedAnswer, 302),
        ("broken", ReveilleError, 500),
        ("away", Unavailable, 502),
        ("shape", UnexpectedAnswer, None),
        ("list", UnexpectedAnswer, None),
    ],
)
def test_an_answer_that_is_not_reveilles_is_told_as_such(connect, something_else, job_id, kind, status):
    with pytest.raises(ReveilleError) as failed:
        connect(something_else, "vk_1", retry=ONCE).jobs.get(job_id)
    assert (type(failed.value), failed.value.status) == (kind, status)


def test_the_key_is_in_nothing_that_is_printed_kept_or_sent_on(connect, server):
    key = "vk_" + secrets.token_hex(20)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        nowhere = f"http://127.0.0.1:{silent.getsockname()[1]}"
        refused = connect(server.http_url, key)
        unheard = connect(nowhere, key, timeout=0.05, retry=ONCE)
        assert key not in repr(refused) + repr(unheard.jobs)
        for ask in (refused.jobs.get, unheard.jobs.get, lambda job_id: unheard.jobs.wait(job_id, timeout=0.05)):
            with pytest.raises(ReveilleError) as failed:
                ask("x")
            error = failed.value
            assert (error.__cause__, error.__context__) == (None, None), "what the library raised has the request"
            assert key not in repr(error) + str(error) + repr(vars(error))
            assert key.encode() not in pickle.dumps(error)
            assert repr(pickle.loads(pickle.dumps(error))) == repr(error)


def test_a_new_keys_secret_is_not_printed(client):
    body = {"name": "printed", "tenant": "default", "scopes": ["read"]}
    created = client.call("POST", "/api/v1/auth/keys", CreatedKey, body=body)
    assert created.secret.startswith("vk_") and created.secret not in repr(created)
