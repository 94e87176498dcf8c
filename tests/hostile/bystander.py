"""An honest tenant, a probe, and a look at the server's memory, all while somebody attacks."""

import contextlib
import http.client
import json
import pathlib
import threading
import time

# What nobody may do to an honest tenant. The figures that are aimed at are far smaller and are printed;
# these are what a busy machine must keep too.
ANSWER_S_MAX = 5
PROBE_S_MAX = 2
RSS_BYTES_MAX = 512 * 1024 * 1024
PAUSE_S = 0.02


class Bystander:
    def __init__(self, server, key):
        self.server = server
        self.key = key

    @contextlib.contextmanager
    def going_on(self):
        """Submits and probes from new connections until the attack is over; then says how that went."""
        self.submits, self.probes, self.problems, self.rss = [], [], [], 0
        self.is_over = threading.Event()
        threads = [threading.Thread(target=self._repeat, args=(what,)) for what in (self._submit, self._probe)]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self.is_over.set()
            for thread in threads:
                thread.join()
        assert not self.problems, self.problems[:3]
        assert len(self.submits) >= 10 and len(self.probes) >= 10, "the attack was over before it was one"
        print(
            f"submits: {len(self.submits)}, p99 {percentile(self.submits) * 1000:.0f} ms; "
            f"probes: {len(self.probes)}, p99 {percentile(self.probes) * 1000:.0f} ms; "
            f"largest RSS {self.rss / 2**20:.0f} MiB"
        )
        assert self.rss < RSS_BYTES_MAX, f"{self.rss / 2**20:.0f} MiB"

    def _repeat(self, what):
        while not self.is_over.is_set():
            try:
                what()
            except (OSError, http.client.HTTPException, AssertionError) as problem:
                self.problems.append(repr(problem))
            self.rss = max(self.rss, self._memory())
            time.sleep(PAUSE_S)

    def _submit(self):
        headers = {"X-API-Key": self.key, "Content-Type": "application/json"}
        body = json.dumps({"topic": "job.honest", "context": {"n": len(self.submits)}})
        took = self._ask("http", ANSWER_S_MAX, "POST", "/api/v1/jobs", body, headers)
        self.submits.append(took)

    def _probe(self):
        self.probes.append(self._ask("admin", PROBE_S_MAX, "GET", "/healthz"))

    def _ask(self, listener, within_s, method, path, body=None, headers=None):
        begun = time.monotonic()
        connection = http.client.HTTPConnection(*self.server.address(listener), timeout=within_s)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            text = response.read()
        assert response.status in (200, 201, 202), (response.status, text[:200])
        return time.monotonic() - begun

    def _memory(self):
        try:
            status = pathlib.Path(f"/proc/{self.server.process.pid}/status").read_text()
        except OSError:
            return 0
        line = next((line for line in status.splitlines() if line.startswith("VmRSS:")), "VmRSS: 0 kB")
        return int(line.split()[1]) * 1024


def percentile(times):
    return sorted(times)[int(len(times) * 0.99) - 1]
