"""One trace from the caller through the server to a stock worker, and its spans at a collector."""

import http.client
import re
import socket

import pytest

from collector import running_collector
from harness import running_server, running_worker, wait_until

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER_SPAN = "00f067aa0ba902b7"
CALLER = f"00-{TRACE}-{CALLER_SPAN}-01"
SECRET = "Bearer the-collectors-secret"
BURST = 50


@pytest.fixture
def collector():
    with running_collector() as collector:
        yield collector


def settings_for(url):
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": url,
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=" + SECRET.replace(" ", "%20"),
        "OTEL_SERVICE_NAME": "fleet-one",
    }


@pytest.fixture
def server(binary, tmp_path, collector):
    with running_server(binary, tmp_path, settings_for(collector.url)) as server:
        yield server


def submit(server, **headers):
    body = {"topic": "job.echo", "context": {"x": 1}}
    answer = server.exchange("POST", "/api/v1/jobs", body, {"X-API-Key": server.key, **headers})
    assert answer.status == 200, answer
    return answer


def counted(server, name):
    page = server.exchange("GET", "/metrics").text
    return int(re.search(rf"^cordum_scheduler_{name}_total (\d+)", page, re.MULTILINE)[1])


def test_a_job_of_a_stock_agent_is_one_trace_with_its_parents_right(server, start_agent, collector):
    start_agent("agent-1")

    answer = submit(server, traceparent=CALLER, tracestate="vendor=1")
    job = server.ended_job(answer.json()["job_id"])
    spans = wait_until("the spans", lambda: collector.spans_of_job(job["id"]))

    assert job["state"] == "SUCCEEDED"
    assert (job["trace_id"], answer.json()["trace_id"]) == (TRACE, TRACE)
    assert answer.headers["traceparent"] == job["traceparent"]
    root, *parts = spans
    assert (root["name"], root["parentSpanId"], root["service"]) == ("job.echo", CALLER_SPAN, "fleet-one")
    assert job["traceparent"] == f"00-{TRACE}-{root['spanId']}-01"
    assert {part["name"] for part in parts} == {"policy", "queued", "attempt"}
    assert {part["parentSpanId"] for part in parts} == {root["spanId"]}
    assert {span["traceId"] for span in spans} == {TRACE}
    assert {span["traceState"] for span in spans} == {"vendor=1"}
    assert len({span["spanId"] for span in spans}) == len(spans)
    [attempt] = [part for part in parts if part["name"] == "attempt"]
    assert (attempt["attributes"]["reveille.worker"], attempt["status"]["code"]) == ("agent-1", 1)
    for span in spans:
        assert int(root["startTimeUnixNano"]) <= int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
    [(path, headers, _)] = collector.requests
    assert (path, headers["authorization"]) == ("/v1/traces", SECRET)
    assert "the-collectors-secret" not in server.log_text()


def test_a_worker_on_nats_py_sees_the_span_of_its_attempt(server, start_worker, collector):
    start_worker("traced_worker.py", "seer-1")
    server.wait_for_workers("seer-1")

    job_id = submit(server, traceparent=CALLER, tracestate="vendor=1").json()["job_id"]
    seen = server.ended_job(job_id)["result"]
    spans = wait_until("the spans", lambda: collector.spans_of_job(job_id))

    [attempt] = [span for span in spans if span["name"] == "attempt"]
    assert seen["headers"] == {"traceparent": f"00-{TRACE}-{attempt['spanId']}-01", "tracestate": "vendor=1"}
    assert seen["trace_id"] == TRACE


def test_a_job_without_a_caller_begins_a_trace_that_is_named_after_it(server, start_agent, collector):
    start_agent("agent-1")

    job = server.ended_job(submit(server).json()["job_id"])
    root, *_ = wait_until("the spans", lambda: collector.spans_of_job(job["id"]))

    assert (root["traceId"], root.get("parentSpanId")) == (job["id"].replace("-", ""), None)


def test_what_the_caller_does_not_record_is_not_exported(server, start_agent, collector):
    start_agent("agent-1")

    silent = server.ended_job(submit(server, traceparent=CALLER[:-1] + "0").json()["job_id"])
    told = server.ended_job(submit(server).json()["job_id"])
    wait_until("the other job's spans", lambda: collector.spans_of_job(told["id"]))

    assert silent["traceparent"].endswith("-00")
    assert not collector.spans_of_job(silent["id"])


@pytest.mark.parametrize(
    "value",
    ["0" * 10240, CALLER.upper(), CALLER + "-more", "\xff\xfe\x80", f"00-{'0' * 32}-{CALLER_SPAN}-01", ""],
    ids=["long", "upper case", "more", "binary", "zeros", "empty"],
)
def test_a_bad_traceparent_costs_nobody_a_job(server, value):
    answer = submit(server, traceparent=value)

    assert answer.json()["trace_id"] == answer.json()["job_id"]
    assert answer.headers["traceparent"].startswith("00-")


def test_many_headers_beside_it_do_no_harm_and_too_many_end_the_connection_only(server):
    many = {f"x-{number}": "y" for number in range(50)}
    crowd = {f"x-{number}": "y" for number in range(1000)}

    assert submit(server, traceparent=CALLER, **many).json()["trace_id"] == TRACE
    try:
        status = server.exchange("POST", "/api/v1/jobs", {}, {"X-API-Key": server.key, **crowd}).status
    except (http.client.RemoteDisconnected, ConnectionError):
        # It said so and hung up; whether that is still read is a matter of timing.
        status = 431
    assert status == 431
    assert submit(server, traceparent=CALLER).json()["trace_id"] == TRACE


def test_a_collector_that_does_not_answer_holds_up_no_job_and_no_stop(server, start_agent, collector):
    start_agent("agent-1", "--max-parallel", "8")
    collector.awake.clear()

    jobs = [server.ended_job(submit(server).json()["job_id"]) for _ in range(BURST)]

    assert {job["state"] for job in jobs} == {"SUCCEEDED"}
    wait_until("a request to the collector", lambda: collector.requests)
    assert not collector.spans
    assert server.stop() == 0


def test_spans_for_a_collector_that_is_not_there_are_dropped_and_counted(binary, tmp_path):
    with socket.socket() as nobody:
        # Bound and not listening: nobody else can take the port, and nobody answers.
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        with (
            running_server(binary, tmp_path, settings_for(url)) as server,
            running_worker("echo_agent.py", server, tmp_path, "--worker-id", "agent-1"),
        ):
            server.wait_for_workers("agent-1")
            jobs = [server.ended_job(submit(server).json()["job_id"]) for _ in range(BURST)]
            assert {job["state"] for job in jobs} == {"SUCCEEDED"}
            wait_until("failures", lambda: counted(server, "trace_export_failures") > 0)
            # Five tries take about 15 s; then what they carried is gone, and said to be.
            wait_until("drops", lambda: counted(server, "trace_jobs_dropped") > 0, seconds=60)
            assert counted(server, "trace_jobs_exported") == 0
            assert server.log_text().count("the trace collector does not take spans") == 1


def test_spans_that_a_collector_turned_away_for_now_arrive_later(server, start_agent, collector):
    start_agent("agent-1")
    collector.status = 503

    job = server.ended_job(submit(server).json()["job_id"])
    wait_until("a refusal", lambda: counted(server, "trace_export_failures") > 0)
    collector.status = 200

    assert wait_until("the spans", lambda: collector.spans_of_job(job["id"]))
    assert (counted(server, "trace_jobs_exported"), counted(server, "trace_jobs_dropped")) == (1, 0)
