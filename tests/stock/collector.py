"""A small collector: takes OTLP over HTTP in its JSON form, and is as slow or unwell as a test wants."""

import contextlib
import http.server
import json
import threading


class Collector:
    def __init__(self):
        self.requests = []
        self.spans = []
        self.status = 200
        # Set: answers come at once. Cleared: they do not come.
        self.awake = threading.Event()
        self.awake.set()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.server.daemon_threads = True

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def handler(self):
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.requests.append((self.path, dict(self.headers), body))
                collector.awake.wait()
                if collector.status == 200:
                    collector.spans += spans_of(json.loads(body))
                with contextlib.suppress(OSError):
                    self.send_response(collector.status)
                    self.send_header("Content-Length", "2")
                    self.end_headers()
                    self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        return Handler

    def spans_of_job(self, job_id):
        """The spans of the trace that this job is part of."""
        for span in list(self.spans):
            if span["attributes"].get("reveille.job.id") == job_id:
                return [other for other in self.spans if other["traceId"] == span["traceId"]]
        return []


def spans_of(request):
    for group in request["resourceSpans"]:
        service = attributes_of(group["resource"])["service.name"]
        for scope in group["scopeSpans"]:
            for span in scope["spans"]:
                yield {**span, "service": service, "attributes": attributes_of(span)}


def attributes_of(thing):
    return {one["key"]: next(iter(one["value"].values())) for one in thing["attributes"]}


@contextlib.contextmanager
def running_collector():
    collector = Collector()
    threading.Thread(target=collector.server.serve_forever, daemon=True).start()
    try:
        yield collector
    finally:
        collector.awake.set()
        collector.server.shutdown()
        collector.server.server_close()
