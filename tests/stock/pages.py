"""The pages of one server's console, in a browser."""

from harness import running_worker, wait_until

CAP_TTL_S = 3
SHOWN_S_MAX = 30
POLICY = """
version: v1
default_decision: deny
rules:
  - {id: ask-first, match: {topics: [job.careful]}, decision: require_approval, reason: a person must look}
  - {id: all, match: {topics: [job.*]}, decision: allow}
output_policy: {enabled: true, fail_mode: closed, hold: true}
output_rules:
  - {id: leak, match: {topics: [job.echo], scanners: [secret]}, decision: quarantine, reason: it says too much}
"""


class Console:
    """The browser at one server's console."""

    def __init__(self, browser, server, folder):
        self.browser, self.server, self.folder = browser, server, folder

    def sign_in(self, key=None, at="/"):
        self.browser.open(self.server.http_url + at)
        self.browser.forget()
        self.browser.open(self.server.http_url + at)
        assert self.browser.path() == "/ui/sign-in"
        self.browser.fill("#key", key or self.server.key)
        self.browser.press("button[type=submit]")
        wait_until("the page behind the door", lambda: self.browser.path() == at.split("?")[0])

    def open(self, path):
        self.browser.open(self.server.http_url + path)
        return self.browser.text("main")

    def sees(self, words, selector="main"):
        wait_until(f"{words!r} on the page", lambda: words in self.browser.text(selector), SHOWN_S_MAX)

    def picture(self, name):
        self.browser.screenshot(self.folder / f"{name}.png")


def agent(server, tmp_path, *arguments):
    return running_worker("echo_agent.py", server, tmp_path, *arguments)
