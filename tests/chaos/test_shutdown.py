"""SIGTERM in the middle of everything: an orderly end, and nothing is owed that a restart does not pay."""

import signal
import threading
import time

from rig import Submitters, assert_all_succeeded, assert_intact, assert_no_panic

JOBS = 1500
STOP_S_MAX = 15
TAIL_S_MAX = 60


def test_sigterm_under_load_loses_nothing(server, start_echo, dice):
    for number in range(1, 5):
        start_echo(f"echo-{number}")
    inputs = [{"number": number, "sleep_ms": dice.choice([0, 0, 50, 1000])} for number in range(JOBS)]
    inputs[0]["sleep_ms"] = (STOP_S_MAX + 5) * 1000

    with Submitters(server, inputs) as submitters:
        submitters.wait_for(JOBS // 3)
        # A client that waits for a job that outlives the patience of any shutdown.
        path = f"/api/v1/jobs/{submitters.acknowledged[0]}?wait=60s"
        waiting = threading.Thread(target=hold_a_call, args=(server, path))
        waiting.start()
        time.sleep(dice.uniform(0.05, 0.2))

        told = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        code = server.process.wait(timeout=2 * STOP_S_MAX)
        took_s = time.monotonic() - told
        waiting.join()
        print(f"{len(submitters.acknowledged)} acknowledged when it ended, {took_s:.1f} s after the signal")
        assert code == 0
        assert took_s < STOP_S_MAX
        assert_intact(server.data / "reveille.db")

        server.start()
        submitters.finish()

    assert submitters.broken_calls > 0, "the end met no submitter"
    jobs = assert_all_succeeded(server, inputs, submitters.acknowledged, TAIL_S_MAX)
    assert len(jobs) == JOBS
    assert_no_panic(server)


def hold_a_call(server, path):
    try:
        server.call("GET", path, seconds=2 * STOP_S_MAX)
    except OSError:
        pass
