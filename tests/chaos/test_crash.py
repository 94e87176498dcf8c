"""The server is killed again and again while jobs come in and while they finish; nobody who was answered notices."""

import time

from harness import wait_until
from rig import Submitters, assert_all_succeeded, assert_intact, assert_no_panic, listed

KILLS_AT_THE_END = 2
LIVE_STATES = ["PENDING", "SCHEDULED", "DISPATCHED", "RUNNING"]


def crash(server, dice, inputs, pause_s, kills_at_intake, tail_s):
    """Kills the server so often while jobs come in, and more often while the last ones run; then checks every job."""
    started = time.time()
    with Submitters(server, inputs, pause_s) as submitters:
        for kills_left in range(kills_at_intake, 0, -1):
            acknowledged = len(submitters.acknowledged)
            share = (len(inputs) - acknowledged) / (kills_left + 1)
            submitters.wait_for(acknowledged + int(share * dice.uniform(0.1, 0.7)))
            # Mostly the workers are back and at it; now and then it does not get that far.
            if dice.random() < 0.8:
                wait_until("a job that ends", lambda: has_succeeded_since(server, started))
            time.sleep(dice.uniform(0, 0.1))
            assert len(submitters.acknowledged) < len(inputs), "all jobs were in before the kills were through"
            server.kill()
            # Every other time somebody notices; otherwise it is back at once.
            if kills_left % 2:
                submitters.wait_for_a_broken_call()
            started = time.time()
            server.start()
        submitters.finish()

    for _ in range(KILLS_AT_THE_END):
        time.sleep(dice.uniform(0, 0.3))
        live = sum(len(listed(server, state)) for state in LIVE_STATES)
        assert live > 0, "all jobs had ended before the last kills"
        server.kill()
        server.start()

    restarted = time.monotonic()
    jobs = assert_all_succeeded(server, inputs, submitters.acknowledged, tail_s)
    assert len(jobs) == len(inputs)
    again = sum(job["attempts"] > 1 for job in jobs)
    print(
        f"{kills_at_intake} + {KILLS_AT_THE_END} kills, {submitters.broken_calls} broken calls,"
        f" {again} jobs in more than one attempt, all over {time.monotonic() - restarted:.1f} s after the last kill"
    )
    assert_no_panic(server)
    assert server.stop() == 0
    assert_intact(server.data / "reveille.db")


def has_succeeded_since(server, started):
    path = f"/api/v1/jobs?state=SUCCEEDED&limit=1&updated_after={int(started * 1_000_000)}"
    status, page = server.call("GET", path)
    assert status == 200, (status, page)
    return page["items"]


def test_no_acknowledged_job_is_lost_with_workers_of_our_own(server, start_echo, dice):
    workers = [start_echo(f"echo-{number}") for number in range(1, 5)]
    inputs = [{"number": number, "sleep_ms": dice.choice([0, 0, 0, 300])} for number in range(1900)]
    # Still in hand when the last of them is acknowledged.
    inputs += [{"number": number, "sleep_ms": dice.randint(1500, 3000)} for number in range(1900, 2000)]

    crash(server, dice, inputs, pause_s=0.08, kills_at_intake=12, tail_s=60)

    assert all(worker.is_alive() for worker in workers)


def test_no_acknowledged_job_is_lost_with_stock_agents(server, start_agent, dice):
    agents = [start_agent(f"agent-{number}", "--max-parallel", "16") for number in range(1, 3)]
    inputs = [{"number": number, "sleep_s": dice.choice([0, 0, 0.3])} for number in range(270)]
    inputs += [{"number": number, "sleep_s": dice.uniform(1.5, 3)} for number in range(270, 300)]

    crash(server, dice, inputs, pause_s=0.6, kills_at_intake=5, tail_s=60)

    assert all(agent.is_alive() for agent in agents)
