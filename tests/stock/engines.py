"""Real Redis, NATS and PostgreSQL beside a test, each on a free port with a folder of its own.

They end with the test: by the id they were started under, and with this process, however that ends.
"""

import contextlib
import glob
import os
import pathlib
import shutil
import socket
import subprocess
import threading

from harness import LISTENERS, Server, wait_until
from rig import choose_ports, free_address

POSTGRES_USER = "postgres"
SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/usr/local/bin:/usr/bin"


def find(program):
    path = shutil.which(program, path=os.environ.get("PATH", "") + ":" + SYSTEM_FOLDERS)
    if path is None:
        path = max(glob.glob(f"/usr/lib/postgresql/*/bin/{program}"), default=None)
    assert path, f"{program} is missing: `cargo xtask test --only install` installs it"
    return path


class Engine:
    """One engine process: killed, stopped for a while, and started again where it was."""

    def __init__(self, folder):
        self.folder = folder
        self.port = int(free_address().rpartition(":")[2])
        self.process = None

    def start(self):
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [find("setpriv"), *self.user(), "--pdeathsig=KILL", *self.command()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        wait_until(f"{type(self).__name__} on port {self.port}", self.answers)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def user(self):
        return []

    def says(self, line, words):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(line)
                return words in connection.recv(4096)
        except OSError:
            return False


class Redis(Engine):
    def __init__(self, folder, fsync="everysec"):
        super().__init__(folder)
        self.fsync = fsync

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    def command(self):
        words = f"--bind 127.0.0.1 --port {self.port} --appendonly yes --appendfsync {self.fsync} --dir {self.folder}"
        return [find("redis-server"), *words.split(), "--save", ""]

    def answers(self):
        return self.says(b"PING\r\n", b"+PONG")

    def cli(self, *words):
        """What an operator reads with redis-cli."""
        command = [find("redis-cli"), "-p", str(self.port), *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.strip()


    @contextlib.contextmanager
    def monitor(self):
        """What clients send from here on; calling what is given returns the lines so far."""
        lines = []
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(b"MONITOR\r\n")
            sent = connection.makefile(errors="replace")
            assert sent.readline().startswith("+OK")
            threading.Thread(target=lambda: lines.extend(sent), daemon=True).start()
            yield lambda: list(lines)
            connection.shutdown(socket.SHUT_RDWR)


class RedisNode(Redis):
    """One of several Redis servers that are a cluster."""

    def __init__(self, folder, fsync="everysec"):
        super().__init__(folder, fsync)
        self.bus_port = int(free_address().rpartition(":")[2])

    def command(self):
        words = f"--cluster-enabled yes --cluster-port {self.bus_port} --cluster-node-timeout 15000"
        return [*super().command(), *words.split()]


class RedisCluster:
    """Three that share the slots. What is asked of the cluster is asked of the node that has the key."""

    def __init__(self, folder, fsync="everysec"):
        folders = [folder / f"node-{number}" for number in range(3)]
        for path in folders:
            path.mkdir()
        self.nodes = [RedisNode(path, fsync) for path in folders]

    @property
    def url(self):
        return self.nodes[0].url

    def start(self):
        for node in self.nodes:
            node.start()
        bounds = [0, 5461, 10923, 16384]
        for number, node in enumerate(self.nodes):
            node.cli("CLUSTER", "ADDSLOTSRANGE", str(bounds[number]), str(bounds[number + 1] - 1))
            node.cli("CLUSTER", "SET-CONFIG-EPOCH", str(number + 1))
        for node in self.nodes[1:]:
            self.nodes[0].cli("CLUSTER", "MEET", "127.0.0.1", str(node.port), str(node.bus_port))
        for node in self.nodes:
            wait_until("the cluster is one", lambda node=node: self.knows_all(node))

    def knows_all(self, node):
        about = node.cli("CLUSTER", "INFO")
        return "cluster_state:ok" in about and "cluster_known_nodes:3" in about

    def kill(self):
        for node in self.nodes:
            node.kill()

    def cli(self, *words):
        return self.nodes[0].cli("-c", *words)


class Nats(Engine):
    @property
    def url(self):
        return f"nats://127.0.0.1:{self.port}"

    def command(self):
        return [find("nats-server"), "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", str(self.folder / "data")]

    def answers(self):
        return self.says(b"", b"INFO {")


class Postgres(Engine):
    @property
    def url(self):
        return f"postgres://{POSTGRES_USER}@127.0.0.1:{self.port}/postgres"

    def user(self):
        # It refuses to run as root.
        return ["--reuid", POSTGRES_USER, "--regid", POSTGRES_USER, "--clear-groups"] if os.getuid() == 0 else []

    def command(self):
        data = self.folder / "data"
        # No socket in the folder: its path may be longer than a socket's may be.
        sockets = ["-c", "unix_socket_directories="]
        return [find("postgres"), "-D", str(data), *sockets, "-p", str(self.port), "-h", "127.0.0.1"]

    def start(self):
        data = self.folder / "data"
        if not data.exists():
            data.mkdir()
            if os.getuid() == 0:
                shutil.chown(data, POSTGRES_USER)
                open_to_others(data)
            make = [find("initdb"), "--no-sync", "-A", "trust", "-U", POSTGRES_USER, "-E", "UTF8", "-D", str(data)]
            subprocess.run([find("setpriv"), *self.user(), *make], check=True, stdout=subprocess.DEVNULL)
        super().start()

    def answers(self):
        ask = [find("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(ask, check=False).returncode == 0


def open_to_others(folder):
    """A folder of pytest's is its owner's alone; the user of PostgreSQL has to get through."""
    for parent in folder.parents:
        if parent == pathlib.Path("/tmp") or parent == parent.parent:
            return
        parent.chmod(parent.stat().st_mode | 0o011)


class Engines:
    def __init__(self, folder, fsync="everysec", redis=Redis):
        folders = {name: folder / name for name in ("redis", "nats", "postgres")}
        for path in folders.values():
            path.mkdir()
        self.redis = redis(folders["redis"], fsync)
        self.nats = Nats(folders["nats"])
        self.postgres = Postgres(folders["postgres"])

    def all(self):
        return self.redis, self.nats, self.postgres

    @property
    def flags(self):
        return ["--redis", self.redis.url, "--nats", self.nats.url, "--postgres", self.postgres.url]


class Replica(Server):
    """One of several servers on the same engines. Workers go to the engines."""

    def __init__(self, binary, folder, engines, key=None, settings=None, flags=()):
        super().__init__(binary, folder, settings, [*engines.flags, *flags])
        self.engines = engines
        self.listeners = {"http": LISTENERS["http"]}
        self.addresses = dict.fromkeys(self.listeners)
        choose_ports(self)
        self.key = key or self.key

    @property
    def nats_url(self):
        return self.engines.nats.url

    @property
    def redis_url(self):
        return self.engines.redis.url


@contextlib.contextmanager
def running_engines(folder, fsync="everysec", redis=Redis):
    engines = Engines(folder, fsync, redis)
    with contextlib.ExitStack() as stack:
        for engine in engines.all():
            engine.start()
            stack.callback(engine.kill)
        yield engines


@contextlib.contextmanager
def running_replicas(binary, folder, engines, count, settings=None, flags=()):
    with contextlib.ExitStack() as stack:
        replicas = []
        for number in range(count):
            own = folder / f"replica-{number}"
            own.mkdir()
            key = replicas[0].key if replicas else None
            replica = Replica(binary, own, engines, key, settings, flags)
            replica.start()
            stack.callback(end, replica)
            replicas.append(replica)
        for replica in replicas:
            wait_until("every replica knows the others", lambda replica=replica: knows(replica, count))
        yield replicas


def knows(replica, count):
    status, answer = replica.call("GET", "/readyz")
    return status == 200 and answer["recovered"] and len(answer["replicas"]) == count


def end(replica):
    if replica.process.poll() is None:
        replica.kill()
