"""A wire between client and server that can be watched and cut."""

import contextlib
import socket
import threading

from harness import wait_until

READ_LEN = 64 * 1024


class Relay:
    """Passes bytes on. `asked` is all that clients have said, `answered` all that servers have.

    While it is cut, whoever connects is hung up on. With `lose_answers` it hangs up that many times just when the
    server answers: the question was heard, and the client cannot know.
    """

    def __init__(self, host, port):
        self.target = (host, port)
        self.asked = b""
        self.answered = b""
        self.is_cut = False
        self.lose_answers = 0
        self.hang_ups = 0
        self.pairs = []
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=(near,), daemon=True).start()

    def serve(self, near):
        try:
            far = None if self.is_cut else socket.create_connection(self.target)
        except OSError:
            far = None
        if far is None:
            with self.lock:
                self.hang_ups += 1
            near.close()
            return
        with self.lock:
            self.pairs.append((near, far))
        threading.Thread(target=self.pump, args=(near, far, "asked"), daemon=True).start()
        self.pump(far, near, "answered")

    def pump(self, source, sink, what):
        with contextlib.suppress(OSError):
            while piece := source.recv(READ_LEN):
                with self.lock:
                    setattr(self, what, getattr(self, what) + piece)
                    if what == "answered" and self.lose_answers > 0:
                        self.lose_answers -= 1
                        break
                sink.sendall(piece)
        hang_up(source, sink)

    def hang_up(self):
        """On everybody; whoever connects again is let through."""
        with self.lock:
            pairs, self.pairs = self.pairs, []
        for pair in pairs:
            hang_up(*pair)

    def cut(self):
        self.is_cut = True
        self.hang_up()

    def mend(self):
        self.is_cut = False

    def wait_until_asked(self, words):
        wait_until(f"{words} on the wire", lambda: words in self.asked)

    def close(self):
        self.listener.close()
        self.cut()


def hang_up(*sockets):
    for one in sockets:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()


@contextlib.contextmanager
def relay_to(server):
    relay = Relay(*server.address("http"))
    try:
        yield relay
    finally:
        relay.close()
