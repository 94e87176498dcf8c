"""Jobs, dead letters, approvals and quarantine, by both clients."""

import secrets

import pytest
from harness import wait_until

from reveille import JOB_ENDS, Conflict, Denied, Forbidden, NotFound, Throttled, WaitTimeout

SECRET = "AKIAIOSFODNN7EXAMPLE"


@pytest.mark.parametrize("value", [{"x": 1, "deep": [None, 1.5, "ü"]}, ["a", 1], "a text", 7, True])
def test_a_job_gives_back_any_json(client, value):
    submitted = client.jobs.submit(topic="job.echo", context=value, labels={"who": "ann"}, priority="interactive")

    job = client.jobs.wait(submitted.job_id, timeout=60)

    assert (job.state, job.result, job.context) == ("SUCCEEDED", value, value)
    assert (job.labels, job.attempts, job.worker_id) == ({"who": "ann"}, 1, "echo-1")
    assert job.state in JOB_ENDS and job.trace_id == submitted.trace_id
    assert client.jobs.get(job.id).result == value
    assert job.timeline[-1].state == "SUCCEEDED" and job.decisions[0].rule_id == "rest"


def test_the_same_idempotency_key_gives_the_same_job(client, topic):
    key = secrets.token_hex(8)
    first, again = (client.jobs.submit(topic=topic, context={}, idempotency_key=key) for _ in range(2))
    one, other = (client.jobs.submit(topic=topic, context={}) for _ in range(2))

    assert first.job_id == again.job_id
    assert one.job_id != other.job_id
    assert client.jobs.get(first.job_id).idempotency_key == key
    assert client.jobs.get(one.job_id).idempotency_key


def test_a_list_goes_on_from_page_to_page(client, topic):
    asked = [client.jobs.submit(topic=topic, context={"n": n}).job_id for n in range(5)]

    listed = [job.id for job in client.jobs.list(topic=topic, page_size=2)]

    assert listed == asked[::-1]
    assert [job.id for job in client.jobs.list(topic=topic, state="SUCCEEDED")] == []
    some = client.jobs.list(topic=topic, page_size=1)
    assert next(some).id == asked[-1]
    some.close()


def test_a_job_that_waits_says_why_and_is_cancelled(client, topic):
    job_id = client.jobs.submit(topic=topic, context={}).job_id

    explained = wait_until("a reason", lambda: reason(client, job_id, "no_worker"))
    assert topic in explained.explanation and explained.unblock
    with pytest.raises(WaitTimeout) as timeout:
        client.jobs.wait(job_id, timeout=0.05)
    assert isinstance(timeout.value, TimeoutError)
    cancelled = client.jobs.cancel(job_id)
    assert (cancelled.state, cancelled.reason) == ("CANCELLED", None)
    assert client.jobs.cancel(job_id).reason == "the job has already ended"
    assert client.jobs.wait(job_id).state == "CANCELLED"


def reason(client, job_id, word):
    explained = client.jobs.explain(job_id)
    return explained if word in explained.code else None


def test_what_policy_denies_is_told_apart_and_can_be_asked_for_otherwise(client):
    with pytest.raises(Denied) as denied:
        client.jobs.submit(topic="job.echo", context={"x": 1}, labels={"env": "prod"})
    error = denied.value
    assert (error.status, error.code, error.message) == (403, "safety_denied", "not in production")
    assert client.jobs.get(error.job_id).state == "DENIED"
    (decision,) = client.jobs.decisions(error.job_id)
    assert (decision.rule_id, decision.facts.labels) == ("no-prod", {"env": "prod"})

    again = client.jobs.remediate(error.job_id, decision.remediations[0]["id"])

    assert client.jobs.wait(again.job_id, timeout=60).labels == {"env": "staging"}


def test_a_throttled_submit_says_when_to_come_back(client, topic):
    ask = {"topic": "job.flood", "context": {}, "labels": {"who": topic}}
    client.jobs.submit(**ask)

    with pytest.raises(Throttled) as throttled:
        client.jobs.submit(**ask)

    error = throttled.value
    assert (error.status, error.code, error.more) == (429, "throttled", {"rule_id": "flood"})
    assert error.message.startswith("one is enough")
    assert error.retry_after >= 1


def test_a_dead_letter_is_looked_at_retried_and_dropped(client):
    job_id = client.jobs.submit(topic="job.echo", context={"fail": True}).job_id
    assert client.jobs.wait(job_id, timeout=120).state == "FAILED"
    letter = wait_until("the dead letter", lambda: letter_of(client, job_id))
    assert (letter.job_id, letter.topic) == (job_id, "job.echo")
    assert letter in list(client.dead_letters.list(topic="job.echo", page_size=1))

    retried = client.dead_letters.retry(job_id)

    assert client.jobs.get(retried.job_id).parent_job_id == job_id
    assert client.jobs.wait(retried.job_id, timeout=120).state == "FAILED"
    wait_until("the second dead letter", lambda: letter_of(client, retried.job_id))
    client.dead_letters.delete(retried.job_id)
    with pytest.raises(NotFound):
        client.dead_letters.delete(retried.job_id)


def letter_of(client, job_id):
    try:
        return client.dead_letters.get(job_id)
    except NotFound:
        return None


def test_somebody_else_approves_or_rejects(client, other):
    wanted, unwanted = (
        client.jobs.submit(topic="job.echo", context={"n": n}, labels={"amount": "500"}) for n in range(2)
    )
    assert (wanted.status, unwanted.status) == ("approval_required", "approval_required")
    approvals = {approval.job.id: approval for approval in other.approvals.list(page_size=1)}
    assert approvals.keys() >= {wanted.job_id, unwanted.job_id}
    context = other.approvals.context(wanted.job_id)
    assert (context.input.value, context.approval.policy_rule_id) == ({"n": 0}, "dear")
    with pytest.raises(Forbidden) as own:
        client.approvals.approve(wanted.job_id)
    assert own.value.code == "self_approval_denied"
    with pytest.raises(Conflict):
        other.approvals.approve(wanted.job_id, job_hash="another")

    approved = other.approvals.approve(wanted.job_id, job_hash=approvals[wanted.job_id].job_hash, note="fine")
    rejected = other.approvals.reject(unwanted.job_id, reason="too dear")

    assert (approved.job_id, rejected.job_id) == (wanted.job_id, unwanted.job_id)
    assert client.jobs.wait(wanted.job_id, timeout=60).state == "SUCCEEDED"
    assert client.jobs.wait(unwanted.job_id, timeout=60).state == "DENIED"
    resolved = {approval.job.id: approval for approval in other.approvals.list(include_resolved=True)}
    assert resolved[unwanted.job_id].resolved_comment == "too dear"


def test_a_held_result_is_released_or_discarded_by_somebody_else(client, other):
    good, bad = (client.jobs.submit(topic="job.echo", context={"n": n, "key": SECRET}).job_id for n in range(2))
    for job_id in (good, bad):
        wait_until("the quarantine", lambda job_id=job_id: client.jobs.get(job_id).state == "OUTPUT_QUARANTINED")
    job = client.jobs.get(good)
    assert (job.result, job.result_held, job.output_safety.rule_id) == (None, True, "leak")
    held = other.quarantine.get(good)
    assert held.output_safety.findings[0].scanner == "secret"
    assert {held.job_id for held in other.quarantine.list(page_size=1)} >= {good, bad}
    with pytest.raises(Forbidden):
        client.quarantine.release(good)

    assert other.quarantine.release(good, note="a test key").resolution == "released"
    assert other.quarantine.discard(bad, reason="a key").resolution == "discarded"

    assert client.jobs.get(good).result == {"n": 0, "key": SECRET}
    assert client.jobs.get(bad).result is None
    with pytest.raises(Conflict):
        other.quarantine.get(good)
