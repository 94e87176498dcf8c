"""A small A2A agent on a port of its own: the far end of a delegation, as slow or as broken as a test wants it."""

import contextlib
import http.server
import json
import threading
import uuid


def agent_card_of(name, url):
    """A card as Molecule's agents send it, with an A2A extra that has to survive."""
    return {
        "name": name,
        "description": f"The agent {name}",
        "version": "1.0.0",
        "url": url,
        "skills": [{"id": "echo", "name": "Echo", "description": "Says it again", "tags": ["test"]}],
        "capabilities": {"streaming": False, "pushNotifications": False},
        "supportedInterfaces": [{"protocol": "jsonrpc", "url": url}],
    }


class Agent:
    """An A2A agent on a port of its own that answers `message/send` after `delay_s` with what it was told.

    `status` other than 200 makes it fail at the door, `error` inside of JSON-RPC. Each may be changed while it runs.
    """

    def __init__(self, name="agent", delay_s=0.0):
        self.name = name
        self.delay_s = delay_s
        self.status = 200
        self.error = None
        self.requests = []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.server.daemon_threads = True
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.server.serve_forever, name=f"agent-{name}", daemon=True)

    @property
    def url(self):
        """By name: the registry refuses addresses of the loopback, but not the name `localhost`."""
        return f"http://localhost:{self.server.server_port}"

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def texts(self):
        """Everything that the agent was told."""
        return [text_of(request) for request in list(self.requests)]

    def answer(self, request):
        """What the agent says to one request: (status, JSON)."""
        self.requests.append(request)
        self.stopping.wait(self.delay_s)
        if self.status != 200:
            return self.status, {"error": f"{self.name} is out of order"}
        envelope = {"jsonrpc": "2.0", "id": request.get("id")}
        if self.error is not None:
            return 200, envelope | {"error": {"code": -32000, "message": self.error}}
        if request.get("method") != "message/send":
            return 200, envelope | {"error": {"code": -32601, "message": "Method not found"}}
        reply = {
            "kind": "message",
            "role": "agent",
            "messageId": str(uuid.uuid4()),
            "parts": [{"kind": "text", "text": f"{self.name}: {text_of(request)}"}],
        }
        return 200, envelope | {"result": reply}

    def handler(self):
        agent = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.say(200, agent_card_of(agent.name, agent.url))

            def do_POST(self):
                text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                try:
                    request = json.loads(text)
                except ValueError:
                    request = {}
                # Whoever asked may have hung up by now.
                with contextlib.suppress(ConnectionError):
                    self.say(*agent.answer(request))

            def say(self, status, body):
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        return Handler


def text_of(request):
    """The words in an A2A request."""
    parts = request.get("params", {}).get("message", {}).get("parts", [])
    return " ".join(part.get("text", "") for part in parts)
