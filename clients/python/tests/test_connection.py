"""Connections that break, answers that get lost, and servers that are killed in the middle."""

import concurrent.futures
import contextlib
import json
import threading

import pytest
from harness import running_server, running_worker, wait_until
from relay import relay_to

from reveille import Retry, ReveilleError, Throttled, Unavailable

PATIENT = Retry(tries_max=1_000, first_s=0.01, pause_s_max=0.1)
FEW = 4


@pytest.fixture
def relay(server):
    with relay_to(server) as relay:
        yield relay


def test_an_answer_that_is_lost_does_not_make_two_jobs(connect, server, relay, topic):
    relay.lose_answers = 2

    submitted = connect(relay.url, server.key, retry=PATIENT).jobs.submit(topic=topic, context={})

    listed = [job.id for job in connect(server.http_url, server.key).jobs.list(topic=topic)]
    assert (listed, relay.lose_answers) == ([submitted.job_id], 0)
    assert relay.asked.count(b"POST /api/v1/jobs ") == 3


def test_only_what_is_safe_is_asked_again_and_not_for_ever(connect, server, relay):
    client = connect(relay.url, server.key, retry=Retry(tries_max=FEW, first_s=0.0))
    safe = [
        (b"GET /api/v1/jobs/x ", lambda: client.jobs.get("x")),
        (b"GET /api/v1/events ", lambda: next(client.events())),
        (b"POST /api/v1/jobs ", lambda: client.jobs.submit(topic="job.echo", context={}, idempotency_key="same")),
        (b"POST /api/v1/workflows/x/runs ", lambda: client.runs.start("x")),
        (b"POST /v1/agents/heartbeat ", lambda: client.presence.beat(agent_id="a", agent_name="a")),
    ]
    unsafe = [
        (b"POST /api/v1/jobs/x/cancel ", lambda: client.jobs.cancel("x")),
        (b"POST /api/v1/dlq/x/retry ", lambda: client.dead_letters.retry("x")),
        (b"POST /api/v1/approvals/x/approve ", lambda: client.approvals.approve("x")),
        (b"POST /api/v1/workflow-runs/x/rerun ", lambda: client.runs.rerun("x")),
        (b"DELETE /api/v1/workflows/x ", lambda: client.workflows.delete("x")),
    ]
    for times, table in [(FEW, safe), (1, unsafe)]:
        for line, ask in table:
            relay.lose_answers = times
            with pytest.raises(Unavailable):
                ask()
            assert (line, relay.asked.count(line), relay.lose_answers) == (line, times, 0)
    assert idempotency_keys(relay, b"POST /api/v1/jobs ") == {"same"}
    (made,) = idempotency_keys(relay, b"POST /api/v1/workflows/x/runs ")
    assert made, "the client made one, and the same one for each try"


def idempotency_keys(relay, line):
    bodies = [request.split(b"\r\n\r\n", 1)[1].decode() for request in relay.asked.split(line)[1:]]
    return {json.JSONDecoder().raw_decode(body)[0]["idempotency_key"] for body in bodies}


def test_a_client_that_calls_too_often_waits_as_long_as_it_is_told(connect, binary, tmp_path):
    settings = {"REVEILLE_LIMITS_REQUESTS_PER_SECOND": "1"}
    with running_server(binary, tmp_path, settings) as server, relay_to(server) as relay:
        hasty = connect(relay.url, server.key, retry=Retry(tries_max=1))
        patient = connect(relay.url, server.key, retry=Retry(first_s=0.0))

        with pytest.raises(Throttled) as throttled:
            while True:
                hasty.jobs.explain(hasty.jobs.submit(topic="job.later", context={}).job_id)
        assert (throttled.value.code, throttled.value.retry_after >= 1) == ("rate_limited", True)

        refused = relay.answered.count(b" 429 ")
        while relay.answered.count(b" 429 ") == refused:
            assert list(patient.workers.list()) == []


def test_a_retry_is_bounded_and_never_sooner_than_told():
    retry = Retry(tries_max=5, first_s=1.0, pause_s_max=8.0)
    for tries, longest in [(1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0)]:
        assert longest / 2 <= retry.pause_s(tries, None) <= longest
        assert retry.pause_s(tries, 8.0) == 8.0
    assert retry.pause_s(5, None) is None
    assert retry.pause_s(1, 8.1) is None, "longer than it has patience for: the caller decides"
    assert Retry(tries_max=10_000).pause_s(9_000, None) <= 10.0
    for wrong in ({"tries_max": 0}, {"first_s": -1.0}, {"pause_s_max": -1.0}):
        with pytest.raises(ValueError):
            Retry(**wrong)


def test_a_wait_outlives_a_server_that_is_killed(connect, own_server, tmp_path):
    with relay_to(own_server) as relay, concurrent.futures.ThreadPoolExecutor() as others:
        client = connect(relay.url, own_server.key, retry=PATIENT)
        job_id = client.jobs.submit(topic="job.echo", context={"x": 1}).job_id
        ended = others.submit(client.jobs.wait, job_id, timeout=120)
        relay.wait_until_asked(f"/api/v1/jobs/{job_id}?wait=".encode())

        own_server.kill()
        own_server.start()
        with running_worker("echo_agent.py", own_server, tmp_path):
            assert (ended.result().state, ended.result().result) == ("SUCCEEDED", {"x": 1})


def test_a_wait_for_a_run_outlives_a_server_that_is_stopped(connect, own_server, tmp_path):
    with relay_to(own_server) as relay, concurrent.futures.ThreadPoolExecutor() as others:
        client = connect(relay.url, own_server.key, retry=PATIENT)
        client.workflows.save({"id": "w", "steps": {"only": {"topic": "job.echo", "input": {"x": 1}}}})
        run_id = client.runs.start("w").run_id
        ended = others.submit(client.runs.wait, run_id, timeout=120)
        relay.wait_until_asked(f"/api/v1/workflow-runs/{run_id}?wait=".encode())

        assert own_server.stop() == 0
        own_server.start()
        with running_worker("echo_agent.py", own_server, tmp_path):
            assert ended.result().status == "succeeded"


def test_a_wait_does_not_outlast_its_time_because_the_server_is_gone(connect, own_server):
    client = connect(own_server.http_url, own_server.key, retry=Retry(tries_max=1_000_000, first_s=0.1))
    job_id = client.jobs.submit(topic="job.later", context={}).job_id
    own_server.kill()
    with pytest.raises(Unavailable):
        client.jobs.wait(job_id, timeout=0.3)


class Listening:
    """Reads events in a thread of its own, which nobody waits for, and keeps them."""

    def __init__(self, events):
        self.heard = []
        self.error = None
        threading.Thread(target=self.read, args=(events,), daemon=True).start()
        wait_until("the snapshot", lambda: self.heard)

    def read(self, events):
        # The test is over and has closed the client.
        with contextlib.suppress(RuntimeError):
            try:
                for event in events:
                    self.heard.append(event)
            except ReveilleError as error:
                self.error = error

    def jobs(self):
        return [event.data["job_id"] for event in self.heard if event.name == "job.updated"]

    def wait_for(self, job_id):
        def is_heard():
            assert self.error is None, self.error
            return job_id in self.jobs()

        wait_until(f"an event of {job_id}", is_heard)


def test_events_go_on_where_a_connection_broke(connect, server, relay, topic):
    client, direct = connect(relay.url, server.key, retry=PATIENT), connect(server.http_url, server.key)
    listening = Listening(client.events(kinds=["job"]))
    asked = []
    for _ in range(3):
        asked.append(direct.jobs.submit(topic=topic, context={}).job_id)
        listening.wait_for(asked[-1])
        relay.cut()
        asked.append(direct.jobs.submit(topic=topic, context={}).job_id)
        refused = relay.hang_ups
        wait_until("a try that fails", lambda refused=refused: relay.hang_ups > refused)
        assert asked[-1] not in listening.jobs()
        relay.mend()
        listening.wait_for(asked[-1])

    assert [event.name for event in listening.heard].count("snapshot") == 1, "nothing had to be left out"
    ids = [event.id for event in listening.heard]
    assert len(set(ids)) == len(ids), "nothing was told twice"
    assert set(listening.jobs()) >= set(asked)


def test_tries_are_counted_from_the_last_event_on(connect, server, relay, topic):
    client, direct = connect(relay.url, server.key, retry=Retry(tries_max=2)), connect(server.http_url, server.key)
    listening = Listening(client.events(kinds=["job"]))
    for _ in range(4):
        listening.wait_for(direct.jobs.submit(topic=topic, context={}).job_id)
        relay.hang_up()
    listening.wait_for(direct.jobs.submit(topic=topic, context={}).job_id)

    relay.cut()

    wait_until("the end of its patience", lambda: listening.error)
    assert listening.error.code == "unreachable"


def test_events_outlive_a_server_that_is_killed(connect, own_server):
    listening = Listening(connect(own_server.http_url, own_server.key, retry=PATIENT).events())
    listening.wait_for(own_server.submit("job.first", {}))

    own_server.kill()
    own_server.start()

    listening.wait_for(own_server.submit("job.second", {}))


def test_a_reader_of_events_comes_back_later_with_the_last_id(client, topic):
    events = client.events(kinds="job")
    assert next(events).name == "snapshot"
    first, second = (client.jobs.submit(topic=topic, context={}).job_id for _ in range(2))
    seen = next(event for event in events if event.data.get("job_id") == first)
    events.close()

    later = client.events(job=second, after=seen.id)

    assert next(later).data["job_id"] == second
    later.close()


def test_a_text_in_an_event_may_have_any_sign_in_it(client, topic):
    name = "a\u2028b\u2029c"
    events = client.events(kinds=["worker"], worker=topic, contract="voicegateway")
    assert next(events).name == "snapshot"
    client.presence.beat(agent_id=topic, agent_name=name)
    assert next(events).data["worker"]["agent_name"] == name
    events.close()
