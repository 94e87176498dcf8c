"""What the chaos tests share: workers of our own SDK, submitters that do not give up, and the last judgement."""

import concurrent.futures
import contextlib
import http.client
import itertools
import pathlib
import random
import socket
import sqlite3
import subprocess
import threading
import time

from harness import TERMINAL_STATES, Server, Worker, show_log, wait_until

SUBMITTERS = 16
CALL_S_MAX = 10
RETRY_PAUSE_S = 0.02
SUBMIT_S_MAX = 90
PAGE_LEN = 500
PORT_TRIES_MAX = 100
# The kernel takes the ports of outgoing connections from here.
PORTS_OF_CLIENTS = tuple(map(int, pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()))


def free_address():
    """A port that no client can be given by chance, so that it is still free after a restart."""
    for _ in range(PORT_TRIES_MAX):
        port = random.randrange(PORTS_OF_CLIENTS[0] // 2, PORTS_OF_CLIENTS[0])
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return f"127.0.0.1:{port}"
    raise AssertionError("no free port below those of clients")


def choose_ports(server):
    server.addresses = {listener: free_address() for listener in server.addresses}


class Together:
    """The servers as one: every call goes to the next of them."""

    ended_job = Server.ended_job

    def __init__(self, replicas):
        self.replicas = replicas
        self.turns = itertools.count()

    def call(self, *arguments, **options):
        replica = self.replicas[next(self.turns) % len(self.replicas)]
        return replica.call(*arguments, **options)


@contextlib.contextmanager
def ending_server(binary, directory):
    """A server that is not started yet, and not left running."""
    server = Server(binary, directory)
    try:
        yield server
    finally:
        if server.process is not None and server.process.poll() is None:
            server.kill()
        show_log(server.log)


class EchoWorker(Worker):
    """The example worker of our own SDK."""

    def __init__(self, binary, server, directory, worker_id):
        self.log = directory / f"{worker_id}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [binary, worker_id],
                env={"NATS_URL": server.nats_url, "REDIS_URL": server.redis_url},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )


@contextlib.contextmanager
def running_echo(binary, server, directory, worker_id):
    worker = EchoWorker(binary, server, directory, worker_id)
    try:
        yield worker
    finally:
        worker.kill()
        show_log(worker.log)


class Submitters:
    """Threads that submit each input until it is acknowledged, whatever happens to the server meanwhile.

    Every try for one input bears the same idempotency key, so an answer that was lost is not a second job.
    """

    def __init__(self, server, inputs, pause_s=0):
        self.server = server
        self.inputs = inputs
        self.pause_s = pause_s
        self.acknowledged = {}
        self.broken_calls = 0
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._numbers = iter(range(len(inputs)))

    def __enter__(self):
        self._pool = concurrent.futures.ThreadPoolExecutor(max_workers=SUBMITTERS)
        self._threads = [self._pool.submit(self._submit_all) for _ in range(SUBMITTERS)]
        return self

    def __exit__(self, *_):
        self._stopping.set()
        self._pool.shutdown()

    def wait_for(self, count):
        """Returns once so many are acknowledged."""

        def are_there():
            for thread in self._threads:
                if thread.done():
                    thread.result()
            return len(self.acknowledged) >= count

        wait_until(f"{count} acknowledged jobs", are_there, SUBMIT_S_MAX)

    def wait_for_a_broken_call(self):
        before = self.broken_calls
        wait_until("a broken call", lambda: self.broken_calls > before)

    def finish(self):
        self.wait_for(len(self.inputs))

    def _submit_all(self):
        while not self._stopping.is_set():
            with self._lock:
                number = next(self._numbers, None)
            if number is None:
                return
            self._submit(number)
            # Not in step with the others, so that a kill finds some of them in the middle of a call.
            time.sleep(random.uniform(0, 2 * self.pause_s))

    def _submit(self, number):
        body = {"topic": "job.echo", "context": self.inputs[number], "idempotency_key": f"input-{number}"}
        while not self._stopping.is_set():
            try:
                status, answer = self.server.call("POST", "/api/v1/jobs", body, seconds=CALL_S_MAX)
            except (OSError, http.client.HTTPException):
                status, answer = None, None
            if status == 200:
                with self._lock:
                    self.acknowledged[number] = answer["job_id"]
                return
            # No answer, or that of a server on its way out; anything else is a fault.
            assert status in (None, 503), (status, answer)
            with self._lock:
                self.broken_calls += 1
            time.sleep(RETRY_PAUSE_S)


def assert_all_succeeded(server, inputs, acknowledged, seconds):
    """Every acknowledged job ends well, once, with its own result, and there is no job besides them."""
    deadline = time.monotonic() + seconds

    def check(number):
        job = server.ended_job(acknowledged[number], seconds=max(1, deadline - time.monotonic()))
        assert_succeeded(job, inputs[number])
        return job

    with concurrent.futures.ThreadPoolExecutor(max_workers=SUBMITTERS) as pool:
        jobs = list(pool.map(check, acknowledged))
    assert len(set(acknowledged.values())) == len(acknowledged), "one job was acknowledged for two inputs"
    assert sorted(listed(server)) == sorted(acknowledged.values())
    return jobs


def assert_succeeded(job, payload):
    assert (job["state"], job["result"]) == ("SUCCEEDED", payload), job
    endings = [mark for mark in job["timeline"] if mark["state"] in TERMINAL_STATES]
    assert endings == job["timeline"][-1:], job["timeline"]


def listed(server, state=None):
    """The ids of all jobs, page by page."""
    ids, cursor = [], None
    while True:
        path = f"/api/v1/jobs?limit={PAGE_LEN}"
        path += f"&state={state}" if state else ""
        path += f"&cursor={cursor}" if cursor else ""
        status, page = server.call("GET", path)
        assert status == 200, (status, page)
        ids += [job["id"] for job in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            return ids


def assert_intact(database):
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def assert_no_panic(server):
    assert "panicked" not in server.log_text()
