"""Measures the constants of docs/capacity.md: what a worker, an agent, a job and a server cost.

`python3 bench/capacity --only beats,jobs`. It starts servers and engines of its own on loopback and takes CPU time,
memory and bytes, which others on the machine disturb little; it takes no rates. Each figure is the median of `--times`
runs, with the smallest and the largest. The file keeps what earlier runs measured and this one did not.
"""

import argparse
import collections
import json
import pathlib
import statistics
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "tests" / name) for name in ("stock", "chaos")]

import jobs  # noqa: E402
import presence  # noqa: E402
import workers  # noqa: E402

# Servers on NATS, or 0 for the door; connections.
BEATING = ((0, 1), (0, 1_000), (1, 1), (1, 1_000), (2, 1_000), (3, 1_000))
# Servers on PostgreSQL, or 0 for one alone; connections, or 0 for a new one each time.
PRESENT = ((0, 64), (0, 0), (1, 64), (2, 64), (3, 64))
SIZES = (1_000, 10_000, 100_000, 1_000_000)


def measurements(arguments):
    binary, echo = arguments.server, arguments.echo
    sizes = [size for size in SIZES if size <= arguments.workers_max]
    return {
        "rest": [(workers.rest, binary, count) for count in (0, 1, 3)],
        "memory": [(workers.memory, binary, size) for size in sizes],
        "beats": [(workers.beats, binary, *how) for how in BEATING],
        "connections": [(workers.connections, binary)],
        "snapshot": [(workers.snapshot, binary, size, False) for size in sizes[2:]],
        "snapshot-redis": [(workers.snapshot, binary, size, True) for size in sizes[2:]],
        "presence": [(presence.presence, binary, *how) for how in PRESENT],
        "jobs": [(jobs.jobs, binary, echo, count, rate) for rate in (400, 0) for count in (0, 1, 2, 3)],
        "kept": [(jobs.kept, binary, echo)],
        "waiting": [(jobs.waiting, binary, count) for count in (0, 1)],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--server", default="target/release/reveille")
    parser.add_argument("--echo", default="target/release/examples/echo", help="the example of crates/worker")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--workers-max", type=int, default=1_000_000)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("bench-out/capacity.json"))
    arguments = parser.parse_args()

    known = measurements(arguments)
    chosen = arguments.only.split(",") if arguments.only else list(known)
    assert set(chosen) <= set(known), f"--only takes {', '.join(known)}"
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    earlier = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    figures = collections.defaultdict(list)
    for name in chosen:
        for measure, *about in known[name]:
            for _ in range(arguments.times):
                for what, value in measure(*about).items():
                    figures[what].append(value)
                    print(f"  {what}: {value:.6g}", file=sys.stderr, flush=True)
                arguments.out.write_text(json.dumps(earlier | figures, indent=1, ensure_ascii=False))
    print("| what | median | from | to |\n|---|---|---|---|")
    for what, values in figures.items():
        print(f"| {what} | {statistics.median(values):,.4g} | {min(values):,.4g} | {max(values):,.4g} |")


main()
