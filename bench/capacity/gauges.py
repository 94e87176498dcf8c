"""What a process, a folder and an engine have used so far. Nothing here is a rate: noise of the machine stays out."""

import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import time
import urllib.request

from engines import find

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def cpu_s(process):
    """CPU seconds of a process, and of the children that it has waited for."""
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(int(ticks) for ticks in fields[11:15]) * TICK_S


def family_cpu_s(process):
    """The same with the children that still run, as PostgreSQL has them; one that ends meanwhile is in its parent's."""
    children_cpu_s = 0
    for child in pathlib.Path(f"/proc/{process}/task/{process}/children").read_text().split():
        with contextlib.suppress(FileNotFoundError):
            children_cpu_s += cpu_s(child)
    return children_cpu_s + cpu_s(process)


class Bursts:
    """CPU of what happens now and then, on top of what goes on all the time: looked at in small steps, of which most
    are without it."""

    STEP_S = 0.2

    def __init__(self, processes):
        self.steps = {process: [] for process in processes}

    def watch(self, seconds):
        for _ in range(round(seconds / self.STEP_S)):
            before = {process: cpu_s(process) for process in self.steps}
            time.sleep(self.STEP_S)
            for process, steps in self.steps.items():
                steps.append(cpu_s(process) - before[process])

    def cpu_s(self, process):
        steps = self.steps[process]
        return sum(steps) - statistics.median(steps) * len(steps)


def memory_bytes(process, line="VmRSS"):
    status = pathlib.Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(text.split()[1]) * 1024 for text in status if text.startswith(line))


def peak_bytes(process):
    return memory_bytes(process, "VmHWM")


def forget_peak(process):
    """From here on the peak is a new one."""
    pathlib.Path(f"/proc/{process}/clear_refs").write_text("5")


def written_bytes(process):
    lines = pathlib.Path(f"/proc/{process}/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("write_bytes"))


def metric(server, name, label=""):
    """The sum over all series of a name that begins so and has the label."""
    with urllib.request.urlopen(server.http_url + "/metrics", timeout=60) as page:
        lines = page.read().decode().splitlines()
    series = [line for line in lines if line.startswith("cordum_scheduler_" + name) and label in line]
    return sum(float(line.rsplit(" ", 1)[1]) for line in series)


def redis_info(redis, part):
    lines = redis.cli("INFO", part).splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def nats_page(nats, page):
    with urllib.request.urlopen(f"http://127.0.0.1:{nats.page_port}/{page}", timeout=10) as answer:
        return json.load(answer)


def ask_postgres(postgres, question):
    command = [find("psql"), "-d", postgres.url, "-Atc", question]
    return int(float(subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout))


def take(stand):
    """Everything that only grows, of all processes of a stand."""
    taken = {f"server {number}": cpu_s(server.process.pid) for number, server in enumerate(stand.servers, 1)}
    if stand.engines is None:
        return taken
    redis, nats, postgres = stand.engines.all()
    taken |= {
        "redis": cpu_s(redis.process.pid),
        "nats": cpu_s(nats.process.pid),
        "postgres": family_cpu_s(postgres.process.pid),
    }
    varz = nats_page(nats, "varz")
    taken |= {f"nats {name}": varz[name] for name in ("in_msgs", "out_msgs", "in_bytes", "out_bytes")}
    taken["aof"] = int(redis_info(redis, "persistence")["aof_current_size"])
    taken["wal"] = ask_postgres(postgres, "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")
    return taken


def spent(before, after):
    return {name: after[name] - before[name] for name in before}
