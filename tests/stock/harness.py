"""A running server, its command line, and the worker processes that the tests start beside it.

Everything listens on ports of the server's own choosing, and every process is ended by the id it was started under.
How servers are guarded, and how clients then get in, is the run's mode (`mode.py`).
"""

import contextlib
import http.client
import json
import os
import pathlib
import re
import secrets
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import NamedTuple

import mode

WORKERS = pathlib.Path(__file__).parent / "workers"
READY_S_MAX = 30
JOB_S_MAX = 60
POLL_S = 0.05
TERMINAL_STATES = {"SUCCEEDED", "FAILED", "TIMEOUT", "CANCELLED", "DENIED", "OUTPUT_QUARANTINED"}
LISTENERS = {
    "http": re.compile(r"listening on https?://(\S+:\d+)"),
    "nats-door": re.compile(r"nats door on (?:nats|tls)://(\S+:\d+)"),
    "resp-door": re.compile(r"resp door on rediss?://(\S+:\d+)"),
}

GRPC = {"grpc": re.compile(r"grpc on https?://(\S+:\d+)")}


def wait_until(what, question, seconds=READY_S_MAX):
    """Asks until the answer is true, gives the answer back, and fails in words when time runs out."""
    deadline = time.monotonic() + seconds
    while True:
        answer = question()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(POLL_S)


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    text: str

    def json(self):
        return json.loads(self.text)


class Server:
    """One `reveille serve`. Its ports are chosen at the first start and kept over restarts.

    `settings` are variables such as `REVEILLE_FLEET_CAP_TTL_SECONDS`, `flags` more words for the command line.
    """

    def __init__(self, binary, directory, settings=None, flags=(), grpc=False):
        self.binary = binary
        self.settings = settings or {}
        self.flags = flags
        self.key = "vk_" + secrets.token_hex(20)
        self.worker_key = None
        self.data = directory / "data"
        self.log = directory / "server.log"
        self.listeners = LISTENERS | GRPC if grpc else LISTENERS
        self.addresses = dict.fromkeys(self.listeners, "127.0.0.1:0")
        self.process = None

    @property
    def http_url(self):
        return f"{mode.scheme('http')}://" + self.addresses["http"]

    @property
    def nats_url(self):
        """As a worker is given it: with a worker's key where one is asked for."""
        return self.url_of_nats_door(self.worker_key)

    @property
    def redis_url(self):
        return self.url_of_resp_door(self.worker_key)

    @property
    def operator_nats_url(self):
        """For whoever does at a door what no worker may, such as to submit."""
        return self.url_of_nats_door(self.key if mode.ASKS_FOR_KEYS else None)

    @property
    def operator_redis_url(self):
        return self.url_of_resp_door(self.key if mode.ASKS_FOR_KEYS else None)

    def url_of_nats_door(self, key):
        return f"{mode.scheme('nats')}://{key + '@' if key else ''}" + self.addresses["nats-door"]

    def url_of_resp_door(self, key):
        return f"{mode.scheme('redis')}://{':' + key + '@' if key else ''}" + self.addresses["resp-door"]

    def address(self, listener):
        host, port = self.addresses[listener].rsplit(":", 1)
        return host, int(port)

    def start(self):
        said_before = self.log.stat().st_size if self.log.exists() else 0
        command = [self.binary, "serve", "--data", str(self.data)]
        for listener, address in self.addresses.items():
            command += [f"--{listener}", address]
        command += self.flags
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                env={**os.environ, "REVEILLE_OPERATOR_KEY": self.key, **mode.server_settings(), **self.settings},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

        def chosen_addresses():
            assert self.process.poll() is None, f"the server ended by itself:\n{self.log_text()}"
            said = self.log.read_bytes()[said_before:].decode(errors="replace")
            found = {listener: line.search(said) for listener, line in self.listeners.items()}
            return all(found.values()) and {listener: match[1] for listener, match in found.items()}

        self.addresses = wait_until("the listeners in the server's output", chosen_addresses)
        wait_until("/readyz", self.is_ready)
        if mode.ASKS_FOR_KEYS and self.worker_key is None:
            # The tests' workers are a fleet that tenants share.
            self.worker_key = self.create_key("default", "worker", worker={"serves": ["*"]})

    def is_ready(self):
        try:
            return self.call("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def kill(self):
        """As the kernel would under memory pressure: no goodbye."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        """An orderly end; gives the exit code back."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def log_text(self):
        return self.log.read_text(errors="replace")

    def call(self, method, path, body=None, key=None, seconds=JOB_S_MAX):
        """One HTTP exchange: (status, decoded JSON or None). `body` is bytes as they are, or anything for JSON."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        headers = {"X-API-Key": self.key if key is None else key, "Content-Type": "application/json"}
        request = urllib.request.Request(self.http_url + path, data=data, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=seconds) as response:
                status, text = response.status, response.read()
        except urllib.error.HTTPError as refusal:
            with refusal:
                status, text = refusal.code, refusal.read()
        try:
            return status, json.loads(text)
        except ValueError:
            return status, None

    def connection(self, seconds=JOB_S_MAX):
        """For HTTP by hand."""
        kind = http.client.HTTPSConnection if mode.SPEAKS_TLS else http.client.HTTPConnection
        return kind(*self.address("http"), timeout=seconds)

    def exchange(self, method, path, body=None, headers=None, seconds=JOB_S_MAX):
        """One HTTP exchange with nothing added and no redirect followed: the whole answer."""
        with contextlib.closing(self.connection(seconds)) as connection:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read().decode())

    def create_key(self, tenant, *scopes, **more):
        """A key of a tenant, made over HTTP by the operator; gives the secret back."""
        body = {"name": f"{tenant}'s", "tenant": tenant, "scopes": scopes, **more}
        status, answer = self.call("POST", "/api/v1/auth/keys", body)
        assert status == 201, (status, answer)
        return answer["secret"]

    def submit(self, topic, payload):
        """The worker is handed `payload` exactly; gives the job's id back."""
        status, answer = self.call("POST", "/api/v1/jobs", {"topic": topic, "context": payload})
        assert status in range(200, 300), (status, answer)
        return answer["job_id"]

    def job(self, job_id):
        status, job = self.call("GET", f"/api/v1/jobs/{job_id}")
        assert status == 200, (status, job)
        return job

    def ended_job(self, job_id, seconds=JOB_S_MAX):
        """The job in its last state. The server does the waiting."""
        deadline = time.monotonic() + seconds
        while True:
            left_s = max(1, int(deadline - time.monotonic()))
            status, job = self.call("GET", f"/api/v1/jobs/{job_id}?wait={min(left_s, 30)}s")
            assert status == 200, (status, job)
            if job["state"] in TERMINAL_STATES:
                return job
            assert time.monotonic() < deadline, f"job {job_id} has not ended within {seconds} s: {job}"

    def workers(self):
        status, answer = self.call("GET", "/api/v1/workers")
        assert status == 200, (status, answer)
        return {worker["worker_id"] for worker in answer["items"]}

    def wait_for_workers(self, *worker_ids):
        wait_until(f"workers {worker_ids}", lambda: self.workers() >= set(worker_ids))

    def cli(self, *arguments, key=None, seconds=JOB_S_MAX):
        """`reveille <noun> <verb> …` against this server."""
        noun, verb, *rest = arguments
        command = [self.binary, noun, verb, "--url", self.http_url, "--key", key or self.key, *rest]
        return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)


class Worker:
    """A worker script in a process of its own. It knows the two addresses, and whom to trust if they speak TLS."""

    def __init__(self, script, server, directory, *arguments):
        self.log = directory / f"{script}-{secrets.token_hex(4)}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(WORKERS / script), *arguments],
                env={"NATS_URL": server.nats_url, "REDIS_URL": server.redis_url, **mode.client_variables()},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def is_alive(self):
        return self.process.poll() is None

    def kill(self):
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def running_server(binary, directory, settings=None, flags=(), grpc=False):
    server = Server(binary, directory, settings, flags, grpc)
    try:
        server.start()
        yield server
    finally:
        if server.process is not None and server.process.poll() is None:
            server.kill()
        show_log(server.log)


@contextlib.contextmanager
def running_worker(script, server, directory, *arguments):
    worker = Worker(script, server, directory, *arguments)
    try:
        yield worker
    finally:
        worker.kill()
        show_log(worker.log)


def show_log(path):
    """pytest shows what a fixture prints only when the test failed."""
    if path.exists():
        print(f"--- {path.name}\n{path.read_text(errors='replace')}")
