"""What an agent costs that beats over HTTP: at the server that hears it, at the others, and in PostgreSQL."""

import time

import gauges
from load import Agents
from stands import alone, together
from workers import at, each, idle

AGENTS = 10_000
BEATS = 60_000
BEATS_A_SECOND = 4_000


def presence(binary, count, connections):
    how = f"{connections} connections" if connections else "a new connection each"
    what = f"HTTP beat, {at(count) if count else 'alone'}, {how}"
    with together(binary, count) if count else alone(binary) as stand:
        key = stand.first.create_key("capacity", "ingest", "read")
        agents = Agents(stand.first, key, AGENTS, connections)
        agents.beat(AGENTS, BEATS_A_SECOND)
        time.sleep(2)
        still = idle(stand)
        before, began = gauges.take(stand), time.monotonic()
        agents.beat(BEATS, BEATS_A_SECOND)
        took = time.monotonic() - began
        time.sleep(1)
        used = gauges.spent(before, gauges.take(stand))
        figures = each(what, used, still, took + 1, BEATS)
        if count:
            rows = gauges.ask_postgres(stand.engines.postgres, "SELECT count(*) FROM presence")
            size = gauges.ask_postgres(stand.engines.postgres, "SELECT pg_total_relation_size('presence')")
            figures[f"{what}: PostgreSQL for a presence row, after {BEATS // AGENTS} beats (B)"] = size / rows
        agents.leave()
    return figures
