"""The safety kernel, both ways round: somebody else's that Reveille asks, and Reveille's that somebody else asks."""

import pathlib

import grpc
import pytest
from cap.pb.cordum.agent.v1 import job_pb2, safety_pb2, safety_pb2_grpc

import kernel as moods
import mode
from harness import running_server, running_worker, wait_until
from kernel import running_kernel


@pytest.fixture
def governed(binary, tmp_path):
    """Starts a server that asks a kernel, with a stock Agent at work."""

    with running_kernel() as (kernel, address):

        def start(**settings):
            settings = {"SAFETY_KERNEL_ADDR": address, **settings}
            return running_server(binary, tmp_path, settings)

        yield kernel, start


def metric(server, line):
    """The value of one line of the metrics page; nothing if it is not there."""
    page = server.exchange("GET", "/metrics").text
    found = [row.rsplit(" ", 1)[1] for row in page.splitlines() if row.startswith(line + " ")]
    return float(found[0]) if found else None


def circuit(server, name):
    return metric(server, f'cordum_scheduler_safety_circuit{{circuit="{name}"}}')


def explained(server, job_id):
    return server.call("GET", f"/api/v1/jobs/{job_id}/explain")[1]


def test_the_kernels_word_is_the_jobs_fate(governed, tmp_path):
    kernel, start = governed
    with start() as server, running_worker("echo_agent.py", server, tmp_path, "--worker-id", "agent-1"):
        server.wait_for_workers("agent-1")
        job = server.ended_job(server.submit("job.echo", {"x": 1}))
        assert (job["state"], job["result"], job["safety_rule_id"]) == ("SUCCEEDED", {"x": 1}, "kernel-rule")
        assert (kernel.asked[0].topic, kernel.asked[0].tenant) == ("job.echo", "default")
        assert b'"x": 1' in kernel.asked[0].input_content or b'"x":1' in kernel.asked[0].input_content

        kernel.decision = moods.DENY
        status, reply = server.call("POST", "/api/v1/jobs", {"topic": "job.echo", "context": {}})
        assert (status, reply["code"], reply["error"]) == (403, "safety_denied", "the kernel says so")
        kernel.decision = moods.THROTTLE
        status, reply = server.call("POST", "/api/v1/jobs", {"topic": "job.echo", "context": {}})
        assert (status, reply["code"]) == (429, "throttled")
        kernel.decision = moods.ALLOW_WITH_CONSTRAINTS
        assert server.ended_job(server.submit("job.echo", {}))["state"] == "SUCCEEDED"

        kernel.decision = moods.REQUIRE_HUMAN
        job_id = server.submit("job.echo", {})
        assert server.job(job_id)["state"] == "APPROVAL_REQUIRED"
        ann = server.create_key("default", "read", "write")
        kernel.mood = "fails"
        status, reply = server.call("POST", f"/api/v1/approvals/{job_id}/approve", {}, key=ann)
        assert (status, reply["code"]) == (503, "safety_unavailable")
        kernel.mood = "well"
        status, reply = server.call("POST", f"/api/v1/approvals/{job_id}/approve", {}, key=ann)
        assert status == 200, reply
        assert server.ended_job(job_id)["state"] == "SUCCEEDED"


def test_closed_nothing_runs_while_the_kernel_hangs_and_everything_once_it_is_back(governed, tmp_path):
    kernel, start = governed
    kernel.mood = "hangs"
    with start() as server, running_worker("echo_agent.py", server, tmp_path, "--worker-id", "agent-1"):
        server.wait_for_workers("agent-1")
        jobs = [server.submit("job.echo", {"n": n}) for n in range(4)]
        assert circuit(server, "input") == 2, "three questions of 2 s each had no answer"
        assert len(kernel.asked) == 3, "the fourth was not asked"
        assert circuit(server, "output") == 0
        assert metric(server, 'cordum_scheduler_safety_unavailable_total{topic="job.echo"}') >= 4
        told = explained(server, jobs[3])
        assert told["code"] == "safety_unavailable"
        assert "safety kernel circuit open" in told["explanation"]
        assert {server.job(job)["state"] for job in jobs} == {"PENDING"}

        kernel.mood = "well"
        kernel.awake.set()
        # 30 s open, then probes; the jobs themselves ask again after 5 s, 10 s, 20 s and 30 s.
        ended = [server.ended_job(job, seconds=120) for job in jobs]
        assert [job["result"] for job in ended] == [{"n": n} for n in range(4)]
        assert circuit(server, "input") == 0
        assert metric(server, 'cordum_scheduler_safety_circuit_turns_total{circuit="input",to="open"}') == 1
        assert metric(server, 'cordum_scheduler_input_fail_open_total{topic="job.echo"}') == 0


def test_open_jobs_run_and_it_is_counted_and_said(governed, tmp_path):
    kernel, start = governed
    kernel.mood = "fails"
    with (
        start(POLICY_CHECK_FAIL_MODE="open") as server,
        running_worker("echo_agent.py", server, tmp_path, "--worker-id", "agent-1"),
    ):
        server.wait_for_workers("agent-1")
        jobs = [server.ended_job(server.submit("job.echo", {"n": n})) for n in range(5)]
        assert [(job["state"], job["safety_rule_id"]) for job in jobs] == [("SUCCEEDED", "fail-open")] * 5
        assert len(kernel.asked) == 3, "after three failures nobody is asked"
        assert metric(server, 'cordum_scheduler_input_fail_open_total{topic="job.echo"}') == 5
        assert "input policy fail-open: safety kernel unreachable" in server.log_text()


def test_results_are_judged_by_the_kernel_and_fail_apart(governed, tmp_path):
    kernel, start = governed
    kernel.output = moods.OUTPUT_QUARANTINE
    with (
        start(OUTPUT_POLICY_ENABLED="true") as server,
        running_worker("echo_agent.py", server, tmp_path, "--worker-id", "agent-1"),
    ):
        server.wait_for_workers("agent-1")
        job = server.ended_job(server.submit("job.echo", {"secret": 1}))
        assert (job["state"], job["result"], job["output_safety"]["rule_id"]) == ("OUTPUT_QUARANTINED", None, "r1")

        kernel.output_mood = "fails"
        for _ in range(2):
            job_id = server.submit("job.echo", {"fine": True})
            assert server.ended_job(job_id)["state"] == "SUCCEEDED", "fail-open is the default for results"
        wait_until("the output circuit to open", lambda: circuit(server, "output") == 2)
        assert circuit(server, "input") == 0
        looked_at = len(kernel.looked_at)
        assert server.ended_job(server.submit("job.echo", {"fine": True}))["result"] == {"fine": True}
        assert len(kernel.looked_at) == looked_at, "an open circuit asks nobody"


POLICY = """
version: v1
rules:
  - {id: no-prod, match: {labels: {env: prod}}, decision: deny, reason: not in production}
  - {id: dear, match: {labels: {dear: "yes"}}, decision: require_approval}
  - {id: rest, match: {topics: ["job.*"]}, decision: allow_with_constraints, constraints: {budgets: {max_runtime_ms: 5000}}}
input_rules:
  - {id: passwords, match: {keywords: [hunter2]}, decision: deny}
"""


def channel_to(server):
    address = server.addresses["grpc"]
    if not mode.SPEAKS_TLS:
        return grpc.insecure_channel(address)
    trusted = pathlib.Path(mode.authority().certificate).read_bytes()
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(trusted))


def test_the_sdks_own_client_asks_our_kernel(binary, tmp_path):
    policy = tmp_path / "safety.yaml"
    policy.write_text(POLICY)
    with running_server(binary, tmp_path, flags=("--policy", str(policy)), grpc=True) as server:
        with channel_to(server) as channel:
            stub = safety_pb2_grpc.SafetyKernelStub(channel)
            ours = [("x-api-key", server.key)]

            def asked(method=stub.Check, tenant="acme", metadata=ours, **fields):
                fields = {"job_id": "j1", "topic": "job.echo", "tenant": tenant, **fields}
                return method(safety_pb2.PolicyCheckRequest(**fields), metadata=metadata)

            answer = asked()
            assert (answer.decision, answer.rule_id) == (moods.ALLOW_WITH_CONSTRAINTS, "rest")
            assert answer.constraints.budgets.max_runtime_ms == 5000
            assert answer.policy_snapshot.startswith("v1:")
            for method in (stub.Check, stub.Evaluate, stub.Simulate, stub.Explain):
                answer = asked(method, labels={"env": "prod"})
                assert (answer.decision, answer.rule_id) == (moods.DENY, "no-prod")
            assert "no-prod" in answer.reason and "global" in answer.reason, "explain tells the rules' parts"
            answer = asked(labels={"dear": "yes"})
            assert (answer.decision, answer.approval_required) == (moods.REQUIRE_HUMAN, True)
            assert asked(input_content=b"my password is hunter2").rule_id == "passwords"
            assert asked(meta=job_pb2.JobMetadata(tenant_id="acme")).rule_id == "rest"
            snapshots = stub.ListSnapshots(safety_pb2.ListSnapshotsRequest(), metadata=ours).snapshots
            assert list(snapshots) == [answer.policy_snapshot]

            acme = [("x-api-key", server.create_key("acme", "read"))]
            assert asked(metadata=acme).rule_id == "rest"
            refusals = [
                (grpc.StatusCode.UNAUTHENTICATED, {"metadata": []}),
                (grpc.StatusCode.UNAUTHENTICATED, {"metadata": [("x-api-key", "vk_wrong")]}),
                (grpc.StatusCode.PERMISSION_DENIED, {"metadata": acme, "tenant": "zeta"}),
                (grpc.StatusCode.INVALID_ARGUMENT, {"topic": "not a topic"}),
                (grpc.StatusCode.INVALID_ARGUMENT, {"tenant": "no such\nname"}),
                (grpc.StatusCode.OUT_OF_RANGE, {"input_content": b"x" * (5 * 1024 * 1024)}),
            ]
            for code, fields in refusals:
                with pytest.raises(grpc.RpcError) as refused:
                    asked(**fields)
                assert refused.value.code() == code, (fields, refused.value.details())


def test_a_kernel_in_plain_text_beyond_this_machine_has_to_be_allowed(binary, tmp_path):
    import os
    import subprocess

    command = [binary, "serve", "--http", "127.0.0.1:0", "--nats-door", "off", "--resp-door", "off"]
    command += ["--data", str(tmp_path / "data")]
    for settings, words in [
        ({}, "would be asked in plain text beyond this machine"),
        ({"SAFETY_KERNEL_TLS_REQUIRED": "true", "SAFETY_KERNEL_INSECURE": "true"}, "contradict each other"),
        ({"SAFETY_KERNEL_TLS_CA": "/no/such/ca.pem"}, "/no/such/ca.pem"),
    ]:
        settings = {**os.environ, "SAFETY_KERNEL_ADDR": "kernel.example:50051", **settings}
        ended = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=30)
        assert ended.returncode != 0
        assert words in ended.stderr, ended.stderr
