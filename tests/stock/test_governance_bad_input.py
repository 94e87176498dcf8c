"""What people who govern get wrong, or try on: files that cannot be used, decisions about nothing, forged and late ones.

One server takes all of it in a row. After each, the policy that was in force is still in force, and jobs go on.
"""

import subprocess
import threading

import pytest
import redis

from harness import Server, running_server, running_worker, wait_until

FILE_MAX = 2 * 1024 * 1024
BLOB_MAX = 10 * 1024 * 1024
SDK_RESULT_MAX = 2 * 1024 * 1024
REFUSED = "the new rules cannot be used; the old ones stay in force"

GOOD = """
version: good
rules:
  - {id: no-prod, match: {labels: {env: prod}}, decision: deny, reason: not in production}
  - {id: ask, match: {labels: {ask: please}}, decision: require_approval}
  - {id: rest, match: {topics: ["job.*"]}, decision: allow}
output_policy: {enabled: true, fail_mode: closed, hold: true}
output_rules:
  - {id: stalls, match: {content_patterns: ["(a+)+$"]}, decision: quarantine, reason: it ends in a}
"""


class Governed:
    def __init__(self, server, policy):
        self.server = server
        self.policy = policy

    def submit(self, **fields):
        return self.server.call("POST", "/api/v1/jobs", {"topic": "job.echo", "context": {"x": 1}, **fields})

    def asked(self):
        """A job that waits for a person."""
        status, reply = self.submit(labels={"ask": "please"})
        assert (status, reply["status"]) == (200, "approval_required"), reply
        return reply["job_id"]

    def decide(self, job_id, verb, body=None, key=None):
        return self.server.call("POST", f"/api/v1/approvals/{job_id}/{verb}", body or {}, key=key)

    def refusals(self):
        status, page = self.server.call("GET", "/api/v1/audit?event_type=safety.policy_change&limit=200")
        assert status == 200, page
        return [entry for entry in page["items"] if entry["action"] == "policy_refused"]

    def newest_refusal(self, known):
        """The newest, if there are more than those that are known."""
        refusals = self.refusals()
        return refusals[0] if len(refusals) > known else None

    def assert_good_policy_holds(self):
        status, reply = self.submit(labels={"env": "prod"})
        assert (status, reply["error"]) == (403, "not in production"), reply
        status, reply = self.submit()
        assert status == 200, reply
        job = self.server.ended_job(reply["job_id"])
        assert job["state"] == "SUCCEEDED"
        assert job["decisions"][0]["policy_snapshot"].startswith("good:")


@pytest.fixture(scope="module")
def governed(binary, tmp_path_factory):
    directory = tmp_path_factory.mktemp("governance")
    policy = directory / "safety.yaml"
    policy.write_text(GOOD)
    with (
        running_server(binary, directory, flags=("--policy", str(policy))) as server,
        running_worker("echo_agent.py", server, directory, "--worker-id", "agent-1", "--max-parallel", "4"),
    ):
        server.wait_for_workers("agent-1")
        yield Governed(server, policy)


def rule(words):
    return f"rules: [{{id: r, decision: allow, {words}}}]"


def output_rule(words):
    return f"rules: [{{id: a, decision: allow}}]\noutput_rules: [{{id: r, decision: deny, match: {words}}}]"


BAD_POLICIES = {
    "broken": (b"rules: [", ""),
    "tabs": (b"rules:\n\t- id: a", ""),
    "no-text": (b"\xff\xfe\x00rules", ""),
    "no-map": (b"- just\n- a list", ""),
    "unknown-key": (b"ruels: []", "ruels"),
    "unknown-condition": (rule("match: {tpoics: [job.a]}").encode(), "tpoics"),
    "unknown-decision": (b"rules: [{id: r, decision: maybe}]", "maybe"),
    "twice": (b"rules: [{id: r, decision: allow}, {id: r, decision: deny}]", "twice"),
    "condition": (rule("when: 'job.topic > 5'").encode(), "when"),
    "pattern": (output_rule("{content_patterns: ['(unclosed']}").encode(), "unclosed"),
    "long-pattern": (output_rule("{content_patterns: ['%s']}" % ("a" * 300)).encode(), "256"),
    "huge-pattern": (output_rule("{content_patterns: ['(a{1000}){1000}']}").encode(), ""),
    "scanner": (output_rule("{scanners: [crystal_ball]}").encode(), "crystal_ball"),
    "too-large": (GOOD.encode() + b"#" * FILE_MAX, str(FILE_MAX)),
}


@pytest.mark.parametrize(("text", "word"), BAD_POLICIES.values(), ids=BAD_POLICIES.keys())
def test_a_policy_that_cannot_be_used_is_named_and_the_last_good_one_stays(governed, text, word):
    refused_before, said_before = len(governed.refusals()), governed.server.log_text().count(REFUSED)

    governed.policy.write_bytes(text)

    wait_until("a word in the log", lambda: governed.server.log_text().count(REFUSED) > said_before)
    entry = wait_until("an entry in the trail", lambda: governed.newest_refusal(refused_before))
    assert word in entry["reason"], entry
    assert entry["extra"]["file"] == str(governed.policy)
    assert entry["policy_version"].startswith("good:"), "what is still in force"
    governed.assert_good_policy_holds()

    checked = subprocess.run(
        [governed.server.binary, "policy", "check", str(governed.policy)], capture_output=True, text=True, check=False
    )
    assert checked.returncode != 0
    assert word in checked.stderr and "safety.yaml" in checked.stderr
    assert "panicked" not in checked.stderr


def test_a_policy_that_is_gone_or_a_folder_changes_nothing(governed):
    said_before = governed.server.log_text().count(REFUSED)
    governed.policy.unlink()
    wait_until("a word in the log", lambda: governed.server.log_text().count(REFUSED) > said_before)
    governed.assert_good_policy_holds()

    governed.policy.write_text(GOOD)
    governed.assert_good_policy_holds()


def test_a_server_does_not_start_on_a_policy_that_cannot_be_used(binary, tmp_path):
    policy = tmp_path / "safety.yaml"
    policy.write_text("rules: [{id: r, decision: maybe}]")
    server = Server(binary, tmp_path, flags=("--policy", str(policy)))

    with pytest.raises(AssertionError, match="ended by itself"):
        server.start()

    assert "safety.yaml" in server.log_text() and "maybe" in server.log_text()
    assert "panicked" not in server.log_text()


def test_a_pattern_that_stalls_other_engines_holds_nobody_up(governed):
    """`(a+)+$` doubles its work with every letter where patterns are searched by going back."""
    status, reply = governed.submit(context={"say": "a" * 100_000 + "!"})
    assert governed.server.ended_job(reply["job_id"])["state"] == "SUCCEEDED"
    status, reply = governed.submit(context="b" * 100_000 + "a")
    held = wait_until("a quarantine", lambda: in_state(governed, reply["job_id"], "OUTPUT_QUARANTINED"))
    assert held["reason_code"] == "output_quarantined_async"
    governed.assert_good_policy_holds()


def in_state(governed, job_id, state):
    job = governed.server.job(job_id)
    return job if job["state"] == state else None


def assert_refused(answer, status, code):
    got, envelope = answer
    assert (got, envelope["code"], envelope["status"]) == (status, code, status), answer
    assert envelope["error"]


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_a_decision_about_nothing_is_told_so(governed, verb):
    ann = governed.server.create_key("default", "read", "write")
    assert_refused(governed.decide("vanished", verb), 404, "not_found")
    _, plain = governed.submit()
    governed.server.ended_job(plain["job_id"])
    assert_refused(governed.decide(plain["job_id"], verb, key=ann), 409, "approval_not_actionable")
    cancelled = governed.asked()
    assert governed.server.call("POST", f"/api/v1/jobs/{cancelled}/cancel")[0] == 200
    assert_refused(governed.decide(cancelled, verb, key=ann), 409, "approval_not_actionable")
    assert governed.server.job(cancelled)["state"] == "CANCELLED"


def test_a_forged_hash_or_an_old_policy_approves_nothing(governed):
    ann = governed.server.create_key("default", "read", "write")
    job_id = governed.asked()

    assert_refused(governed.decide(job_id, "approve", {"job_hash": "0" * 64}, ann), 409, "approval_stale_request")
    assert_refused(governed.decide(job_id, "approve", {"policy_snapshot": "old"}, ann), 409, "approval_stale_snapshot")
    assert governed.decide(job_id, "approve", {"job_hash": 5}, ann)[0] == 400
    assert governed.server.job(job_id)["state"] == "APPROVAL_REQUIRED"

    status, context = governed.server.call("GET", f"/api/v1/approvals/{job_id}/context", key=ann)
    asked = context["approval"]
    bound = {"job_hash": asked["job_hash"], "policy_snapshot": asked["policy_snapshot"]}
    assert governed.decide(job_id, "approve", bound, ann)[0] == 200
    assert governed.server.ended_job(job_id)["state"] == "SUCCEEDED"


@pytest.mark.parametrize("verbs", [("approve", "reject"), ("approve", "approve")], ids=["against", "alike"])
def test_of_two_who_decide_at_once_one_does(governed, verbs):
    keys = [governed.server.create_key("default", "read", "write") for _ in verbs]
    for _ in range(10):
        job_id, answers, start = governed.asked(), {}, threading.Barrier(len(verbs))

        def decide(number, job_id=job_id, answers=answers, start=start):
            start.wait()
            answers[number] = governed.decide(job_id, verbs[number], key=keys[number])

        people = [threading.Thread(target=decide, args=(number,)) for number in range(len(verbs))]
        for person in people:
            person.start()
        for person in people:
            person.join()

        won = [number for number, (status, reply) in answers.items() if status == 200 and "status" not in reply]
        assert len(won) == 1, answers
        lost = answers[1 - won[0]]
        if verbs[0] == verbs[1]:
            assert (lost[0], lost[1]["status"]) == (200, "already_approved"), "the same was decided; by whom is said"
            assert lost[1]["approved_by"]
        else:
            assert_refused(lost, 409, "approval_already_resolved")
        expected = {"approve": "SUCCEEDED", "reject": "DENIED"}[verbs[won[0]]]
        assert governed.server.ended_job(job_id)["state"] == expected
        status, decisions = governed.server.call("GET", f"/api/v1/audit?job_id={job_id}&event_type=safety.approval")
        assert decisions["returned"] == 1, "and recorded once"


@pytest.mark.parametrize("verb", ["release", "discard"])
def test_what_is_not_held_cannot_be_released_or_thrown_away(governed, verb):
    ann = governed.server.create_key("default", "read", "write")
    resolve = lambda job_id: governed.server.call("POST", f"/api/v1/quarantine/{job_id}/{verb}", key=ann)
    assert_refused(resolve("vanished"), 404, "not_found")
    _, plain = governed.submit()
    governed.server.ended_job(plain["job_id"])
    assert_refused(resolve(plain["job_id"]), 409, "not_quarantined")
    assert_refused(resolve(governed.asked()), 409, "not_quarantined")

    _, reply = governed.submit(context="ends in a")
    job_id = reply["job_id"]
    wait_until("a quarantine", lambda: in_state(governed, job_id, "OUTPUT_QUARANTINED"))
    assert resolve(job_id)[0] == 200
    assert_refused(resolve(job_id), 409, "not_quarantined")


def test_a_result_that_is_too_large_is_told_so_and_nothing_is_lost(governed):
    """The SDK itself takes 2 MiB; the door takes more, and says where it ends."""
    _, reply = governed.submit(context={"letters": SDK_RESULT_MAX + 1})
    ended = governed.server.ended_job(reply["job_id"])
    assert (ended["state"], ended["reason_code"]) == ("FAILED", "job_failed")
    assert "max size" in ended["error_message"]
    status, letter = governed.server.call("GET", f"/api/v1/dlq/{ended['id']}")
    assert (status, letter["reason_code"]) == (200, "job_failed"), "it can be tried again"

    waiting = governed.asked()
    door = redis.Redis.from_url(governed.server.operator_redis_url)
    with pytest.raises(redis.RedisError):
        door.set(f"res:{waiting}", b"x" * (BLOB_MAX + 1))
    assert door.get(f"res:{waiting}") is None
    assert governed.server.workers() == {"agent-1"}
    governed.assert_good_policy_holds()
