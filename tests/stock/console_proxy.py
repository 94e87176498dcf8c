"""What stands before a console that cannot send a key: its files, and the server's routes with a key added.

As the console's own documents advise. Events are passed on as they come, never gathered. The files are the wheel's,
with one word added: its script calls React by a global name that its page never sets, so that as it is shipped it
shows an empty page on any server, VoiceGateway's included.
"""

import collections
import contextlib
import http.client
import http.server
import mimetypes
import re
import threading

BASE = "/console/"
PASSED_ON = "/openorca/"
CHUNK = 65536


def mended(script):
    """The console's script, with the React that it brings along under the name by which it calls it."""
    if "globalThis.React" in script:
        return script
    ((own_name, _),) = collections.Counter(re.findall(r"\b(\w+)\.useState\(", script)).most_common(1)
    mended, count = re.subn(rf"\bvar {own_name}=\w+\(\);", rf"\g<0>globalThis.React={own_name};", script, count=1)
    assert count == 1, "the console's script is built in another way by now"
    return mended


@contextlib.contextmanager
def running_proxy(server, key, files):
    """Gives the address of the console."""
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler_of(server, key, files))
    proxy.daemon_threads = True
    thread = threading.Thread(target=proxy.serve_forever, name="console-proxy", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{proxy.server_port}{BASE}"
    finally:
        proxy.shutdown()
        proxy.server_close()
        thread.join()


def handler_of(server, key, files):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path.startswith(PASSED_ON):
                self.pass_on()
            else:
                self.serve_file()

        def do_POST(self):
            self.pass_on()

        def serve_file(self):
            name = self.path.removeprefix(BASE).split("?")[0] or "index.html"
            path = (files / name).resolve()
            if not self.path.startswith(BASE) or not path.is_relative_to(files) or not path.is_file():
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Type", mimetypes.guess_type(path)[0] or "application/octet-stream")
            self.end_headers()
            text = path.read_bytes()
            self.wfile.write(mended(text.decode()).encode() if path.suffix == ".js" else text)

        def pass_on(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            upstream = server.connection()
            headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
            # The browser hangs up when the page is left, the server when it is stopped.
            with contextlib.closing(upstream), contextlib.suppress(OSError, http.client.HTTPException):
                upstream.request(self.command, self.path, body, headers)
                response = upstream.getresponse()
                self.send_response(response.status)
                self.send_header("Content-Type", response.headers["Content-Type"])
                self.end_headers()
                while chunk := response.read1(CHUNK):
                    self.wfile.write(chunk)
                    self.wfile.flush()

        def log_message(self, *_):
            pass

    return Handler
