"""A workspace as Molecule's own agents behave, faults included. The agent that it stands for is in `a2a_agent`.

Written from the facts in the presence contract, with nothing but the standard library. The faults are deliberate: a
server has to live with a client that never looks at status codes, forgets what it has seen, sleeps no more once the
server has been away for long, and sends two kinds of half-true beats. Do not mend them here.
"""

import contextlib
import dataclasses
import http.client
import json
import os
import pathlib
import threading
import time
import urllib.parse
import uuid
from typing import Any, NamedTuple

from a2a_agent import agent_card_of

TERMINAL = ("completed", "failed")
SEEN_MAX = 200
AWAY_MAX = 10
RECONNECT_COST_S = 0.05
WAKE_TEXT = "Delegation results are ready. Review them and take appropriate action."


class Exchange(NamedTuple):
    """One request: `status` is 0 when nobody answered, `body` is what was sent, `answer` what came back."""

    method: str
    path: str
    status: int
    body: Any
    answer: Any


class Platform:
    """The HTTP side: one connection per request, redirects not followed, everything written down."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self.kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self.host, self.port, self.prefix = parts.hostname, parts.port, parts.path.rstrip("/")
        self.exchanges = []

    def call(self, method, path, body=None, headers=None, timeout_s=10):
        """(status, decoded JSON or None). Raises OSError, and only that, when nobody answers."""
        connection = self.kind(self.host, self.port, timeout=timeout_s)
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json", **(headers or {})}
        try:
            connection.request(method, self.prefix + path, body=data, headers=headers)
            response = connection.getresponse()
            status, text = response.status, response.read()
        except (OSError, http.client.HTTPException) as problem:
            self.exchanges.append(Exchange(method, path, 0, body, repr(problem)))
            raise OSError(f"{method} {path}: {problem!r}") from problem
        finally:
            connection.close()
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
        self.exchanges.append(Exchange(method, path, status, body, answer))
        return status, answer

    def calls(self, method, path):
        """What was asked so far of one kind."""
        return [exchange for exchange in self.exchanges if (exchange.method, exchange.path) == (method, path)]


@dataclasses.dataclass(frozen=True)
class Intervals:
    """Molecule's own, in seconds. Its documents say 300 for the cooldown, its code 60."""

    beat: float = 30.0
    call_max: float = 10.0
    message_max: float = 120.0
    cooldown: float = 60.0


class Workspace:
    """Registers once, then beats in a thread of its own until it is stopped. Its files are in `directory`."""

    def __init__(self, platform_url, agent_url, directory, *, workspace_id=None, agent_card=None, intervals=None):
        self.id = workspace_id or str(uuid.uuid4())
        self.agent_url = agent_url
        self.agent_card = agent_card or agent_card_of("molecule", agent_url)
        self.platform_url = platform_url
        self.platform = Platform(platform_url)
        self.directory = pathlib.Path(directory)
        self.token_path = self.directory / ".auth_token"
        self.results_path = self.directory / "delegation_results.jsonl"
        self.intervals = intervals or Intervals()

        self.current_task = ""
        self.active_tasks = 0
        self.wedged_because = ""
        self.runtime_metadata = None
        self.requests = self.errors = 0
        self.sample_error = ""
        self.started = time.time()
        self.away = 0
        self.seen = set()
        self.woken_at = None
        self.parent_name = None
        self.warnings = []
        self.stopping = threading.Event()
        self.thread = None

    # The agent's life.

    def register(self):
        """Once, at the start. A failure is printed and never made good."""
        body = {"id": self.id, "url": self.agent_url, "agent_card": self.agent_card}
        try:
            status, answer = self.platform.call("POST", "/registry/register", body, self.auth())
        except OSError as problem:
            print(f"registration failed: {problem}")
            return 0
        if status == 200 and isinstance(answer, dict) and answer.get("auth_token"):
            self.save_token(answer["auth_token"])
        elif status != 200:
            print(f"registration failed: {status} {answer}")
        return status

    def start(self):
        self.thread = threading.Thread(target=self.run, name=f"workspace-{self.id}", daemon=True)
        self.thread.start()

    def stop(self):
        """No goodbye: the beats just end."""
        self.stopping.set()
        if self.thread is not None:
            self.thread.join(self.intervals.message_max + 2 * self.intervals.call_max)

    def __enter__(self):
        self.register()
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def restarted(self):
        """The same workspace after a restart of its container: the files are there, the memory is not."""
        return Workspace(
            self.platform_url,
            self.agent_url,
            self.directory,
            workspace_id=self.id,
            agent_card=self.agent_card,
            intervals=self.intervals,
        )

    # The heartbeat loop.

    def run(self):
        while not self.stopping.is_set():
            try:
                self.beat()
                self.away = 0
            except OSError:
                self.away += 1
            with contextlib.suppress(OSError):
                self.check_delegations()
            # Fault: after ten failures in a row it makes a new client and goes on without a pause.
            pause_s = RECONNECT_COST_S if self.away >= AWAY_MAX else self.intervals.beat
            self.stopping.wait(pause_s)

    def beat(self):
        """Fault: whatever the status, the beat counts as delivered and the counters start anew."""
        body = {
            "workspace_id": self.id,
            "error_rate": self.errors / self.requests if self.requests else 0.0,
            "sample_error": self.sample_error,
            "active_tasks": self.active_tasks,
            "current_task": self.current_task,
            "uptime_seconds": int(time.time() - self.started),
        }
        if self.wedged_because:
            body |= {"runtime_state": "wedged", "sample_error": self.wedged_because}
        if self.runtime_metadata is not None:
            body["runtime_metadata"] = self.runtime_metadata
        self.platform.call("POST", "/registry/heartbeat", body, self.auth(), self.intervals.call_max)
        # Fault: the window is "since the last beat", and the sample is never cleared.
        self.requests = self.errors = 0

    def check_delegations(self):
        path = f"/workspaces/{self.id}/delegations"
        status, rows = self.platform.call("GET", path, headers=self.auth(), timeout_s=self.intervals.call_max)
        if status != 200 or not isinstance(rows, list):
            return
        new = [row for row in rows if self.is_new(row)]
        if not new:
            return
        self.find_parent()
        self.write_results(new)
        self.wake()
        for row in new:
            text = row.get("summary") or row.get("response_preview") or row.get("error") or row["delegation_id"]
            notice = {"message": f"Delegation {row['status']}: {text}", "type": "delegation_result"}
            self.platform.call("POST", f"/workspaces/{self.id}/notify", notice, self.auth(), self.intervals.call_max)

    def is_new(self, row):
        delegation_id = row.get("delegation_id")
        if not delegation_id or delegation_id in self.seen or row.get("status") not in TERMINAL:
            return False
        # Fault: in memory only, and beyond 200 any of them is forgotten.
        self.seen.add(delegation_id)
        while len(self.seen) > SEEN_MAX:
            self.seen.pop()
        if row.get("source_id") != self.id:
            self.warnings.append(f"delegation {delegation_id} is of {row.get('source_id')}")
            return False
        return True

    def find_parent(self):
        """Asks once whom to report to; only a 200 counts as an answer."""
        if self.parent_name is not None:
            return
        self.parent_name = ""
        status, own = self.platform.call("GET", f"/workspaces/{self.id}", headers=self.auth())
        parent_id = own.get("parent_id") if status == 200 and isinstance(own, dict) else None
        if parent_id:
            status, parent = self.platform.call("GET", f"/workspaces/{parent_id}", headers=self.auth())
            if status == 200 and isinstance(parent, dict):
                self.parent_name = parent.get("name") or ""

    def write_results(self, rows):
        keys = ("delegation_id", "target_id", "source_id", "status", "summary", "response_preview", "error")
        with self.results_path.open("a") as file:
            for row in rows:
                line = {key: row.get(key, "") for key in keys} | {"timestamp": time.time()}
                file.write(json.dumps(line) + "\n")

    def wake(self):
        """Fault: what falls into the cooldown is never announced. And the beats wait for the agent's answer."""
        now = time.monotonic()
        if self.woken_at is not None and now - self.woken_at < self.intervals.cooldown:
            return
        self.woken_at = now
        text = WAKE_TEXT + (f" Report to {self.parent_name}." if self.parent_name else "")
        with contextlib.suppress(OSError):
            self.send_message(text)

    # What else the agent sends. Its tools for delegating are in `molecule_tools`.

    def send_message(self, text, target_id=None):
        """No jsonrpc, no id, no messageId, and parts of a `type` instead of a `kind`."""
        message = {"role": "user", "parts": [{"type": "text", "text": text}]}
        body = {"method": "message/send", "params": {"message": message}}
        headers = self.auth() | {"X-Workspace-ID": self.id}
        path = f"/workspaces/{target_id or self.id}/a2a"
        return self.platform.call("POST", path, body, headers, self.intervals.message_max)

    def set_task(self, description, active_tasks=1):
        """Also beats at once, with an uptime and an error rate that are not true."""
        self.current_task, self.active_tasks = description, active_tasks
        body = {
            "workspace_id": self.id,
            "current_task": description,
            "active_tasks": active_tasks,
            "error_rate": 0,
            "sample_error": "",
            "uptime_seconds": 0,
        }
        return self.platform.call("POST", "/registry/heartbeat", body, self.auth(), self.intervals.call_max)

    # What the agent knows.

    def record_request(self, error=None):
        """An outcome of the agent's own work, for the error rate."""
        self.requests += 1
        if error is not None:
            self.errors += 1
            self.sample_error = error

    def results(self):
        """The results file as the agent would read it."""
        if not self.results_path.exists():
            return []
        return [json.loads(line) for line in self.results_path.read_text().splitlines()]

    def token(self):
        return self.token_path.read_text().strip() if self.token_path.exists() else None

    def save_token(self, token):
        with open(os.open(self.token_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(token)

    def auth(self):
        token = self.token()
        return {"Authorization": f"Bearer {token}"} if token else {}
