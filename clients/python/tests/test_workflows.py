"""Workflows and their runs, by both clients."""

import pytest
from harness import wait_until

from reveille import BadRequest, Conflict, NotFound


@pytest.fixture
def saved(client, topic):
    """A workflow of two steps: one that a worker does, and one that is worked out."""
    document = {
        "id": topic.removeprefix("job."),
        "steps": {
            "echo": {"topic": "job.echo", "input": {"said": "${input.say}"}},
            "shout": {"type": "transform", "depends_on": ["echo"], "input": "${steps.echo.output.said + '!'}"},
        },
        "output": "${steps.shout.output}",
    }
    assert client.workflows.save(document).version == 1
    return document


def test_a_workflow_is_kept_in_versions(client, saved):
    assert client.workflows.save({**saved, "name": "Louder"}).version == 2

    latest, first = client.workflows.get(saved["id"]), client.workflows.get(saved["id"], version=1)

    assert (latest.rest["name"], latest.rest["version"]) == ("Louder", 2)
    assert first.rest["steps"].keys() == {"echo", "shout"}
    assert client.workflows.save(latest.rest).version == 2, "what was read can be saved again"
    another = client.workflows.save({**saved, "id": saved["id"] + "-b"}).id
    listed = [workflow.rest["id"] for workflow in client.workflows.list(page_size=1)]
    assert listed == sorted(set(listed)) and {saved["id"], another} <= set(listed)
    client.workflows.delete(saved["id"])
    with pytest.raises(NotFound):
        client.workflows.get(saved["id"])


def test_a_run_is_started_once_watched_and_repeated(client, saved):
    started = client.runs.start(saved["id"], {"say": "hey"}, idempotency_key=saved["id"], team_id="blue")
    again = client.runs.start(saved["id"], {"say": "hey"}, idempotency_key=saved["id"])
    assert (again.run_id, started.existing, again.existing) == (started.run_id, False, True)

    run = client.runs.wait(started.run_id, timeout=60)

    assert (run.status, run.output, run.input) == ("succeeded", "hey!", {"say": "hey"})
    assert (run.steps["echo"].output, run.steps["shout"].status) == ({"said": "hey"}, "succeeded")
    assert client.jobs.get(run.steps["echo"].job_id).workflow_id == saved["id"]
    assert client.runs.get(run.id).output == run.output
    lines = list(client.runs.timeline(run.id, page_size=2))
    assert [line.n for line in lines] == list(range(1, len(lines) + 1)) and len(lines) > 2
    assert list(client.runs.timeline(run.id, after=lines[-2].n)) == lines[-1:]

    rerun = client.runs.rerun(run.id, from_step="shout")

    repeated = client.runs.wait(rerun.run_id, timeout=60)
    assert (repeated.output, repeated.origin, repeated.parent_run_id) == ("hey!", "rerun", run.id)
    listed = client.runs.list(workflow_id=saved["id"], status="succeeded", page_size=1)
    assert [run.id for run in listed] == [repeated.id, run.id]
    assert [run.id for run in client.runs.list(workflow_id=saved["id"], team_id="red")] == []


def test_a_run_is_cancelled_and_deleted(client, topic):
    workflow_id = topic.removeprefix("job.")
    client.workflows.save({"id": workflow_id, "steps": {"wait": {"topic": topic}}})
    run_id = client.runs.start(workflow_id).run_id
    with pytest.raises(Conflict) as early:
        client.runs.delete(run_id)
    assert early.value.code == "RUN_NOT_OVER"

    client.runs.cancel(run_id, reason="never mind")

    assert client.runs.wait(run_id, timeout=60).status == "cancelled"
    with pytest.raises(Conflict):
        client.runs.cancel(run_id)
    # It is cancelled before its job knows; until then it is kept.
    wait_until("its end", lambda: is_deleted(client, run_id))
    with pytest.raises(NotFound):
        client.runs.get(run_id)


def is_deleted(client, run_id):
    try:
        client.runs.delete(run_id)
    except Conflict:
        return False
    return True


def test_a_dry_run_says_what_would_happen(client, saved):
    dry = client.workflows.dry_run(saved["id"], {"say": "hey"})
    first = dry.steps[0]
    assert (first.step_id, first.input, first.policy.rule_id) == ("echo", {"said": "hey"}, "rest")

    other = {**saved, "steps": {"only": {"type": "transform", "input": 1}}, "output": "${steps.only.output}"}
    assert [step.step_id for step in client.workflows.dry_run(saved["id"], workflow=other).steps] == ["only"]


def test_a_bad_document_is_refused_with_the_step_and_the_field(client, saved):
    with pytest.raises(BadRequest) as refused:
        client.workflows.save({**saved, "steps": {"a": {"type": "transform", "depends_on": ["b"]}}})
    error = refused.value
    assert (error.code, error.more["step"], error.field) == ("invalid_workflow", "a", "depends_on")
