"""Those who listen: to server-sent events, and on a WebSocket. Each reads in a thread and keeps every frame."""

import base64
import contextlib
import hashlib
import http.client
import json
import secrets
import socket
import struct
import threading
import time
from typing import Any, NamedTuple

from dial import dial
from harness import READY_S_MAX

SILENCE_S_MAX = 60
ACCEPT_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, CLOSE, PING, PONG = 0x1, 0x8, 0x9, 0xA
OPCODE = 0x0F
LAST_FRAME = 0x80
MASKED = 0x80


class Frame(NamedTuple):
    """One thing that was said. `event` and `id` are those of a server-sent event, or nothing."""

    event: str
    data: Any
    text: str
    id: str = ""


class Listener:
    """Opened when it is made: what happens afterwards is heard. `frames` is everything so far, in order."""

    def __init__(self):
        self.frames = []
        self.ended = False
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self.run, name=type(self).__name__, daemon=True)
        self.thread.start()

    def run(self):
        # However it ends, what was heard until then stands.
        with contextlib.suppress(OSError, ValueError, AttributeError, http.client.HTTPException):
            for frame in self.read():
                with self.changed:
                    self.frames.append(frame)
                    self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def wait_for(self, what, is_meant, seconds=READY_S_MAX, after=0):
        """The first frame from place `after` on that is meant."""
        deadline = time.monotonic() + seconds
        with self.changed:
            while True:
                for frame in self.frames[after:]:
                    if is_meant(frame):
                        return frame
                after = max(after, len(self.frames))
                left_s = deadline - time.monotonic()
                heard = "\n".join(frame.text for frame in self.frames[-40:])
                assert left_s > 0, f"{what}: not heard within {seconds} s, but\n{heard}"
                assert not self.ended, f"{what}: the stream ended first, after\n{heard}"
                self.changed.wait(left_s)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
        self.thread.join()


class EventStream(Listener):
    """`GET` of a `text/event-stream`."""

    def __init__(self, server, path, headers):
        self.connection = server.connection(SILENCE_S_MAX)
        self.connection.request("GET", path, headers=headers)
        self.response = self.connection.getresponse()
        self.socket = self.connection.sock
        if self.response.status != 200:
            raise Refused(self.response.status, self.response.read().decode())
        super().__init__()

    def read(self):
        event, data, place, lines = "", [], "", []
        for raw in self.response:
            line = raw.decode().rstrip("\r\n")
            lines.append(line)
            if line.startswith("event:"):
                event = line.removeprefix("event:").strip()
            elif line.startswith("id:"):
                place = line.removeprefix("id:").strip()
            elif line.startswith("data:"):
                data.append(line.removeprefix("data:").strip())
            elif not line:
                if data:
                    yield Frame(event, json.loads("\n".join(data)), "\n".join(lines), place)
                event, data, lines = "", [], []

    def close(self):
        hang_up(self.socket)


class WebSocket(Listener):
    """A client that only listens, as a canvas does. Pings are answered."""

    def __init__(self, server, path, headers):
        self.socket = dial(server, "http", SILENCE_S_MAX)
        key = base64.b64encode(secrets.token_bytes(16)).decode()
        lines = [f"GET {path} HTTP/1.1", "Host: reveille", "Upgrade: websocket", "Connection: Upgrade"]
        lines += [f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        self.incoming = self.socket.makefile("rb")
        status = int(self.incoming.readline().split()[1])
        answered = dict(iter(self.header, None))
        if status != 101:
            body = self.incoming.read(int(answered.get("content-length", 0)))
            self.socket.close()
            raise Refused(status, body.decode())
        accepted = hashlib.sha1((key + ACCEPT_SUFFIX).encode()).digest()
        assert answered["sec-websocket-accept"] == base64.b64encode(accepted).decode()
        super().__init__()

    def header(self):
        line = self.incoming.readline().decode().strip()
        if not line:
            return None
        name, value = line.split(":", 1)
        return name.lower(), value.strip()

    def read(self):
        while True:
            first, length = self.exactly(2)
            assert first & LAST_FRAME, "no message of ours is cut in pieces"
            if length == 126:
                (length,) = struct.unpack(">H", self.exactly(2))
            elif length == 127:
                (length,) = struct.unpack(">Q", self.exactly(8))
            payload = self.exactly(length)
            opcode = first & OPCODE
            if opcode == TEXT:
                yield Frame("", json.loads(payload), payload.decode())
            elif opcode == PING:
                self.send(PONG, payload)
            elif opcode == CLOSE:
                return

    def exactly(self, length):
        data = self.incoming.read(length)
        if len(data) < length:
            raise ConnectionError("closed")
        return data

    def send(self, opcode, payload=b""):
        mask = secrets.token_bytes(4)
        masked = bytes(byte ^ mask[place % 4] for place, byte in enumerate(payload))
        self.socket.sendall(bytes([LAST_FRAME | opcode, MASKED | len(payload)]) + mask + masked)

    def close(self):
        hang_up(self.socket)


class Refused(Exception):
    """A stream that was not opened: the status and the body."""


def hang_up(connection):
    """Wakes whoever reads from it, too."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
