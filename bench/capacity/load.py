"""Workers, agents and submitters, as far as a server can tell: the bytes that they would send, at an even pace."""

import contextlib
import http.client
import json
import socket
import struct
import threading
import time

SLICE_S = 0.01


# CAP packets, by hand: no more than a worker says in its handshake and its heartbeats.


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def text(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def number(field, value):
    return varint(field << 3) + varint(value)


def envelope(worker, field, body):
    moment = number(1, int(time.time())) + number(2, 123_456_789)
    return text(1, worker) + text(2, worker) + text(3, moment) + number(4, 1) + text(field, body)


def heartbeat(worker, load):
    """With a pool, two labels and its load, which changes from beat to beat."""
    labels = [("region", "region-" + worker[-1]), ("class", "class-" + worker[-2])]
    body = text(1, worker) + varint(4 << 3 | 5) + struct.pack("<f", load)
    body += text(11, "fleet") + number(12, 4)
    body += b"".join(text(13, text(1, key) + text(2, value)) for key, value in labels)
    return published("sys.heartbeat", envelope(worker, 12, body))


def handshake(worker):
    body = text(1, worker) + number(2, 3) + text(6, "job.echo")
    return published("sys.handshake", envelope(worker, 17, body))


def published(subject, packet):
    return b"PUB %s %d\r\n%s\r\n" % (subject.encode(), len(packet), packet)


def worker_id(index):
    return f"worker-{index:08}"


class Fleet:
    """Workers that beat over so many connections."""

    def __init__(self, port, workers, connections=1):
        self.size = workers
        self.beats = [[heartbeat(worker_id(index), load) for index in range(workers)] for load in (10.0, 20.0)]
        self.handshakes = [handshake(worker_id(index)) for index in range(workers)]
        # Not before: who is silent for too long after that is cut off.
        self.sockets = [connected(port) for _ in range(connections)]

    def join(self, rate=100_000):
        self.send(self.handshakes, self.size, rate)
        self.send(self.beats[0], self.size, rate)

    def beat(self, count, rate):
        """So many beats, at an even pace, each worker in turn and with another load every time."""
        for round_ in range(-(-count // self.size)):
            self.send(self.beats[(round_ + 1) % 2], min(count - round_ * self.size, self.size), rate)

    def send(self, packets, count, rate):
        pace = Pace()
        each = int(rate * SLICE_S)
        for start in range(0, count, each):
            part = packets[start : min(start + each, count)]
            if len(self.sockets) == 1:
                self.sockets[0].sendall(b"".join(part) + pong(self.sockets[0]))
            else:
                for offset, packet in enumerate(part, start):
                    self.sockets[offset % len(self.sockets)].sendall(packet)
            pace.wait()

    def leave(self):
        for one in self.sockets:
            one.close()


class Pace:
    """Waits for the next slice of time; one that comes too late does not hurry after."""

    def __init__(self):
        self.due = time.monotonic()

    def wait(self):
        self.due = max(self.due + SLICE_S, time.monotonic() - SLICE_S)
        time.sleep(max(0, self.due - time.monotonic()))


def pong(one):
    """What a client owes that was asked whether it is there."""
    with contextlib.suppress(BlockingIOError):
        return b"PONG\r\n" * one.recv(65_536, socket.MSG_DONTWAIT).count(b"PING")
    return b""


def connected(port):
    one = socket.create_connection(("127.0.0.1", port))
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    one.sendall(b'CONNECT {"verbose":false}\r\n')
    return one


# VoiceGateway agents.


def agent_beat(index, key, connection):
    beat = {
        "agent_id": f"agent-{index:06}",
        "agent_name": "capacity",
        "status": "busy" if index % 3 else "idle",
        "active_sessions": index % 3,
        "version": "0.27.0",
        "project": "default",
        "tenant_id": None,
        "region": "iad",
        "host": f"host-{index:06}",
        "started_at": 1783200000.0,
        "ts": 1783200015.0,
    }
    body = json.dumps(beat).encode()
    head = f"POST /v1/agents/heartbeat HTTP/1.1\r\nhost: capacity\r\nauthorization: Bearer {key}\r\n"
    head += f"content-type: application/json\r\nconnection: {connection}\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Agents:
    """Agents that beat over HTTP: on connections that stay, or each time on a new one."""

    def __init__(self, server, key, agents, connections=64):
        self.address = server.address("http")
        self.connections = connections
        word = "keep-alive" if connections else "close"
        self.requests = [agent_beat(index, key, word) for index in range(agents)]
        self.sockets = [socket.create_connection(self.address) for _ in range(connections)]

    def beat(self, count, rate):
        pace = Pace()
        each = int(rate * SLICE_S)
        for start in range(0, count, each):
            sockets = self.sockets[:each] or [socket.create_connection(self.address) for _ in range(each)]
            for offset, one in enumerate(sockets):
                one.sendall(self.requests[(start + offset) % len(self.requests)])
            for one in sockets:
                answer = one.recv(4096)
                assert answer.startswith(b"HTTP/1.1 20"), answer
                if not self.connections:
                    one.close()
            pace.wait()

    def leave(self):
        for one in self.sockets:
            one.close()


# Submitters.


def submit(servers, count, rate, submitters=16):
    """So many jobs over HTTP, each submitter at its server; returns when all are acknowledged."""
    body = json.dumps({"topic": "job.echo", "context": {"document": "0123456789abcdef" * 2, "pages": [1, 2, 3]}})
    troubles = []

    def work(which):
        server = servers[which % len(servers)]
        headers = {"X-API-Key": server.key, "Content-Type": "application/json"}
        connection = http.client.HTTPConnection(*server.address("http"), timeout=60)
        with contextlib.closing(connection):
            pause = submitters / rate if rate else 0
            begun = time.monotonic() + pause * which / submitters
            for turn, _ in enumerate(range(which, count, submitters)):
                time.sleep(max(0, begun + turn * pause - time.monotonic()))
                connection.request("POST", "/api/v1/jobs", body, headers)
                answer = connection.getresponse()
                said = answer.read()
                if answer.status not in range(200, 300):
                    troubles.append(said)

    threads = [threading.Thread(target=work, args=(which,)) for which in range(submitters)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not troubles, troubles[:3]
