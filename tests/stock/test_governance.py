"""A stock `Agent` under a policy: who may ask for what, a person who decides, and results that nobody may read."""

import json

import pytest
import redis

from harness import running_server, running_worker, wait_until

SECRET = "AKIAIOSFODNN7EXAMPLE"

POLICY = """
version: v1
rules:
  - id: no-prod
    match: {labels: {env: prod}}
    decision: deny
    reason: not in production
    remediations: [{id: stage, title: Use staging, add_labels: {env: staging}}]
  - {id: dear, when: has(job.labels.amount) && int(job.labels.amount) > 100, decision: require_approval}
  - {id: rest, match: {topics: ["job.*"]}, decision: allow}
input_rules:
  - {id: passwords, match: {keywords: [hunter2]}, decision: deny}
output_policy: {enabled: true, fail_mode: closed, hold: true}
output_rules:
  - {id: hide, match: {topics: [job.echo], scanners: [pii]}, decision: redact}
  - {id: leak, match: {topics: [job.echo], scanners: [secret]}, decision: quarantine, reason: it says too much}
"""


@pytest.fixture
def governed(binary, tmp_path):
    policy = tmp_path / "safety.yaml"
    policy.write_text(POLICY)
    with running_server(binary, tmp_path, flags=("--policy", str(policy))) as server:
        with running_worker("echo_agent.py", server, tmp_path, "--worker-id", "agent-1"):
            server.wait_for_workers("agent-1")
            yield server


def blob(server, name):
    return redis.Redis.from_url(server.operator_redis_url).get(name)


def test_a_result_that_says_too_much_is_held_back_until_somebody_else_releases_it(governed):
    job_id = governed.submit("job.echo", {"note": f"use {SECRET}"})
    job = wait_until("a quarantine", lambda: held(governed, job_id))

    assert (job["result"], job["result_ptr"], job["result_held"]) == (None, "", True)
    assert job["output_safety"]["findings"][0]["scanner"] == "secret"
    assert SECRET not in json.dumps(job["output_safety"])
    assert blob(governed, f"res:{job_id}") is None

    release = f"/api/v1/quarantine/{job_id}/release"
    status, reply = governed.call("POST", release)
    assert (status, reply["code"]) == (403, "self_release_denied")
    ann = governed.create_key("default", "read", "write")
    status, reply = governed.call("POST", release, key=ann)
    assert (status, reply["resolution"]) == (200, "released")
    job = governed.job(job_id)
    assert (job["state"], job["result"], job["attempts"]) == ("SUCCEEDED", {"note": f"use {SECRET}"}, 1)
    assert SECRET in blob(governed, f"res:{job_id}").decode()


def held(server, job_id):
    job = server.job(job_id)
    return job if job["state"] == "OUTPUT_QUARANTINED" else None


def test_a_redacted_copy_is_all_that_can_be_read(governed):
    job = governed.ended_job(governed.submit("job.echo", {"to": "ann@example.com", "n": 1}))
    job = wait_until("the redacted copy", lambda: redacted(governed, job["id"]))

    assert job["state"] == "SUCCEEDED"
    assert job["result"]["n"] == 1
    assert "ann@example.com" not in json.dumps(job["result"])
    assert blob(governed, f"res:{job['id']}") is None
    assert b"REDACTED" in blob(governed, job["result_ptr"].removeprefix("redis://"))


def redacted(server, job_id):
    job = server.job(job_id)
    return job if job["result"] is not None else None


def test_an_ended_jobs_result_cannot_be_changed_through_the_door(governed):
    job = governed.ended_job(governed.submit("job.echo", {"x": 1}))
    door = redis.Redis.from_url(governed.operator_redis_url)

    door.set(f"res:{job['id']}", '{"x": 2}')

    assert wait_until("the result", lambda: redacted(governed, job["id"]))["result"] == {"x": 1}


def test_policy_judges_labels_conditions_and_inputs(governed):
    submit = lambda body: governed.call("POST", "/api/v1/jobs", {"topic": "job.echo", "context": {}, **body})

    status, reply = submit({"labels": {"env": "prod"}})
    assert (status, reply["error"]) == (403, "not in production")
    status, reply = submit({"context": {"say": "my password is hunter2"}})
    assert status == 403
    status, reply = submit({"labels": {"amount": "500"}})
    assert (status, reply["status"]) == (200, "approval_required")
    waiting = reply["job_id"]

    ann = governed.create_key("default", "read", "write")
    approve = f"/api/v1/approvals/{waiting}/approve"
    assert governed.call("POST", approve)[0] == 403
    assert governed.call("POST", approve, key=ann)[0] == 200
    assert governed.ended_job(waiting)["state"] == "SUCCEEDED"
    status, decisions = governed.call("GET", f"/api/v1/jobs/{waiting}/decisions")
    assert [decision["rule_id"] for decision in decisions] == ["dear", "dear"]
    assert decisions[0]["facts"]["labels"] == {"amount": "500"}


def test_a_policy_is_tried_out_from_the_command_line(governed, tmp_path):
    governed.ended_job(governed.submit("job.echo", {"x": 1}))
    stricter = tmp_path / "stricter.yaml"
    stricter.write_text("rules: [{id: nobody, decision: deny}]")

    done = governed.cli("policy", "simulate", str(stricter), "--since", "1h", "--json")

    assert done.returncode == 0, done.stderr
    replay = json.loads(done.stdout)
    assert (replay["examined"], replay["changed"]) == (1, 1)
    assert replay["differences"][0]["would_be_rule"] == "nobody"


def test_a_way_out_that_policy_offered_is_taken(governed):
    body = {"topic": "job.echo", "context": {"x": 1}, "labels": {"env": "prod"}}
    status, refusal = governed.call("POST", "/api/v1/jobs", body)
    assert status == 403
    path = f"/api/v1/jobs/{refusal['job_id']}/remediate"
    assert governed.call("POST", path, {"remediation_id": "pray"})[0] == 400

    status, reply = governed.call("POST", path, {"remediation_id": "stage"})

    assert status == 200, reply
    job = governed.ended_job(reply["job_id"])
    assert (job["state"], job["labels"]) == ("SUCCEEDED", {"env": "staging"})
    assert job["parent_job_id"] == refusal["job_id"]


def test_scanners_of_a_file_count_and_are_read_again(binary, tmp_path):
    policy, scanners = tmp_path / "safety.yaml", tmp_path / "output_scanners.yaml"
    policy.write_text(
        "rules: [{id: all, decision: allow}]\noutput_policy: {enabled: true}\n"
        "output_rules: [{id: badges, match: {scanners: [badge]}, decision: quarantine}]\n"
    )

    def badge(letter):
        pattern = f"{{name: number, regex: '{letter}-[0-9]{{6}}'}}"
        scanners.write_text(f"scanners: {{badge: {{finding_type: staff, patterns: [{pattern}]}}}}")

    badge("B")
    flags = ("--policy", str(policy), "--scanners", str(scanners))
    with (
        running_server(binary, tmp_path, flags=flags) as server,
        running_worker("echo_agent.py", server, tmp_path, "--worker-id", "agent-1"),
    ):
        server.wait_for_workers("agent-1")
        first = server.submit("job.echo", {"who": "B-123456"})
        wait_until("a quarantine", lambda: held(server, first))

        badge("C")
        wait_until("the other scanner", lambda: "rules reloaded" in server.log_text())
        second = server.submit("job.echo", {"who": "C-123456"})
        wait_until("a quarantine", lambda: held(server, second))
        third = server.ended_job(server.submit("job.echo", {"who": "B-123456"}))
        third = wait_until("the second look", lambda: looked_at(server, third["id"]))
        assert third["state"] == "SUCCEEDED"


def looked_at(server, job_id):
    job = server.job(job_id)
    return job if job["output_safety"] else None
