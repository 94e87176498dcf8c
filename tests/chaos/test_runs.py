"""A server, or one of two, is killed again and again while runs of workflows begin, wait, fail and are undone; each ends
as it would have."""

import concurrent.futures
import contextlib
import http.client
import itertools
import threading
import time

from engines import running_engines, running_replicas
from harness import wait_until
from rig import Together, assert_intact, assert_no_panic, running_echo

RUNS = 300
STARTERS = 6
KILL_EVERY_S = 1.0
END_S_MAX = 90

UNDO = {"topic": "job.echo", "input": {"undo": "${item}"}}
WORKFLOWS = [
    {
        "id": "plain",
        "steps": {
            "a": {"topic": "job.echo", "input": {"n": "${input.n}"}},
            "b": {"topic": "job.echo", "depends_on": ["a"], "input": {"n": "${steps.a.output.n + 1}"}},
            "c": {"type": "transform", "depends_on": ["b"], "input": "${steps.b.output.n}"},
        },
    },
    {
        "id": "slow",
        "steps": {
            "wait": {"type": "delay", "delay_sec": 2},
            "each": {"topic": "job.echo", "depends_on": ["wait"], "for_each": [1, 2, 3, 4], "max_parallel": 2, "input": {"n": "${input.n + item}"}},
            "sum": {"type": "transform", "depends_on": ["each"], "input": "${steps.each.output.map(one, one.n)}"},
        },
    },
    {
        "id": "undone",
        "steps": {
            "first": {"topic": "job.echo", "input": {"n": "${input.n}"}, "compensation": {"topic": "job.echo", "input": {"undo": "first"}}},
            "each": {"topic": "job.echo", "depends_on": ["first"], "for_each": [1, 2, 3], "max_parallel": 1, "input": {"n": "${item}"}, "compensation": UNDO},
            "wait": {"type": "delay", "depends_on": ["each"], "delay_sec": 1},
            "last": {"topic": "job.echo", "depends_on": ["wait"], "input": {"fail": True}},
        },
    },
]


def test_every_run_ends_as_it_would_have_without_kills(server, start_echo, dice):
    for number in range(1, 4):
        start_echo(f"echo-{number}")

    def blow():
        server.kill()
        server.start()

    survive(server, dice, blow)
    assert_no_panic(server)
    assert server.stop() == 0
    assert_intact(server.data / "reveille.db")


def test_every_run_ends_though_one_of_two_servers_is_killed_every_second(binary, echo_binary, tmp_path, dice):
    folder = tmp_path / "engines"
    folder.mkdir()
    with contextlib.ExitStack() as stack:
        # What was answered is on disk, whatever is killed.
        engines = stack.enter_context(running_engines(folder, fsync="always"))
        settings = {"WORKER_SNAPSHOT_INTERVAL": "1s"}
        replicas = stack.enter_context(running_replicas(binary, tmp_path, engines, 2, settings))
        names = [f"echo-{number}" for number in range(1, 4)]
        for name in names:
            stack.enter_context(running_echo(echo_binary, replicas[0], tmp_path, name))
        for replica in replicas:
            replica.wait_for_workers(*names)
        turns = itertools.cycle(replicas)

        def blow():
            replica = next(turns)
            replica.kill()
            replica.start()

        survive(Together(replicas), dice, blow)
        timers = engines.redis.cli("ZCARD", "cordum:wf:delay:timers")
        assert timers == "0", "a timer of a run that is over"
        for replica in replicas:
            assert_no_panic(replica)
            assert replica.stop() == 0


def survive(server, dice, blow):
    """Deals a blow every second while runs are started and until they wait for little more; then checks every run."""
    for workflow in WORKFLOWS:
        status, answer = server.call("POST", "/api/v1/workflows", {"name": workflow["id"], **workflow})
        assert status == 201, answer

    blows = 0
    over = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(max_workers=STARTERS) as pool:
        starting = [pool.submit(start_run, server, number, dice.uniform(0, 1.5), over) for number in range(RUNS)]
        try:
            while not all(one.done() for one in starting):
                time.sleep(KILL_EVERY_S)
                blow()
                blows += 1
        finally:
            over.set()
        runs = [one.result() for one in starting]
    # While the last of them wait and are undone.
    for _ in range(4):
        time.sleep(KILL_EVERY_S)
        blow()
        blows += 1

    assert len(set(runs)) == RUNS, "two runs were asked for, and one was given"
    wait_until("every run to be over", lambda: not live_runs(server), END_S_MAX)
    for number, run in enumerate(runs):
        check(server, number, run)
    print(f"{RUNS} runs through {blows} kills")


def start_run(server, number, pause_s, over):
    time.sleep(pause_s)
    workflow = WORKFLOWS[number % len(WORKFLOWS)]["id"]
    body = {"input": {"n": number}, "idempotency_key": f"run-{number}"}
    while not over.is_set():
        try:
            status, answer = server.call("POST", f"/api/v1/workflows/{workflow}/runs", body, seconds=5)
        except (OSError, http.client.HTTPException):
            status, answer = None, None
        if status == 200:
            return answer["run_id"]
        assert status in (None, 503), (status, answer)
        time.sleep(0.05)
    raise AssertionError("the run was not started")


def live_runs(server):
    return [run for state in ("pending", "running", "waiting") for run in listed(server, f"?status={state}")]


def listed(server, query):
    status, page = server.call("GET", f"/api/v1/workflow-runs{query}&limit=500")
    assert status == 200, page
    return page["items"]


def get(server, run):
    status, found = server.call("GET", f"/api/v1/workflow-runs/{run}")
    assert status == 200, found
    return found


def check(server, number, run_id):
    run = get(server, run_id)
    kind = WORKFLOWS[number % len(WORKFLOWS)]["id"]
    states = {step: node["status"] for step, node in run["steps"].items()}
    if kind == "plain":
        assert (run["status"], run["output"]) == ("succeeded", {"c": number + 1}), run
    elif kind == "slow":
        assert (run["status"], run["output"]) == ("succeeded", {"sum": [number + n for n in (1, 2, 3, 4)]}), run
    else:
        assert run["status"] == "failed", run
        assert (states.pop("last"), set(states.values())) == ("failed", {"succeeded"}), run
        check_undone(server, run)


def check_undone(server, run):
    """What it did was undone once, last first, each when the one before was over."""
    rollback = get(server, run["rollback_run_id"])
    assert rollback["status"] == "succeeded", rollback
    undone = [item["input"]["undo"] for item in rollback["input"]["undo"]]
    assert undone == [3, 2, 1, "first"], rollback
    before = 0
    for number in range(4):
        node = rollback["steps"][f"undo[{number}]"]
        status, job = server.call("GET", f"/api/v1/jobs/{node['job_id']}")
        assert (status, job["state"], node["attempt"]) == (200, "SUCCEEDED", 1), (node, job)
        assert job["created_at"] >= before, "it began before the one before it was over"
        before = job["updated_at"]
    jobs = server.call("GET", f"/api/v1/jobs?trace_id={rollback['id']}&limit=100")[1]["items"]
    assert len(jobs) == 4, jobs
