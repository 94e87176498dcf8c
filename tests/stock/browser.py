"""A headless Chromium, steered over plain WebDriver."""

import base64
import contextlib
import json
import os
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request

import mode

START_S_MAX = 60
CALL_S_MAX = 60
PRESSES_MAX = 10
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--no-proxy-server",
    "--window-size=1400,900",
]


class StaleElement(Exception):
    """Something that was found on a page and is not there any more."""


class Browser:
    def __init__(self, driver_url, profile):
        options = {"args": [*FLAGS, *mode.browser_flags(), f"--user-data-dir={profile}"], "binary": found("chromium")}
        wishes = {"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options}}}
        self.driver_url = driver_url
        self.session = f"{driver_url}/session/" + call(f"{driver_url}/session", wishes)["sessionId"]

    def open(self, url):
        call(f"{self.session}/url", {"url": url})

    def run(self, script, *arguments):
        """What a piece of JavaScript returns."""
        return call(f"{self.session}/execute/sync", {"script": script, "args": arguments})

    def fill(self, selector, text):
        """Types into a field, as somebody with a keyboard would."""
        element = self.find(selector)
        call(f"{self.session}/element/{element}/clear", {})
        call(f"{self.session}/element/{element}/value", {"text": text})

    def press(self, selector):
        """Pages replace their parts as things change, also between the finding of one and the click."""
        for _ in range(PRESSES_MAX):
            with contextlib.suppress(StaleElement):
                return call(f"{self.session}/element/{self.find(selector)}/click", {})
        raise AssertionError(f"{selector} was replaced {PRESSES_MAX} times")

    def find(self, selector):
        found = call(f"{self.session}/element", {"using": "css selector", "value": selector})
        return next(iter(found.values()))

    def text(self, selector="body"):
        return self.run("return document.querySelector(arguments[0])?.innerText ?? '';", selector)

    def path(self):
        return self.run("return location.pathname;")

    def forget(self):
        """Signs out of everything."""
        call(f"{self.session}/cookie", method="DELETE")

    def type_key(self, key):
        """One key, wherever the keyboard is: `"\ue004"` is Tab, `"\ue007"` Enter."""
        strokes = [{"type": kind, "value": key} for kind in ("keyDown", "keyUp")]
        call(f"{self.session}/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": strokes}]})

    def allow_scripts(self, is_allowed):
        """Whether pages may run theirs; our own questions are answered in any case."""
        self.tell("Emulation.setScriptExecutionDisabled", value=not is_allowed)

    def become_a_phone(self, width, height):
        self.tell("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=True)

    def become_a_desk(self):
        self.tell("Emulation.clearDeviceMetricsOverride")

    def prefer(self, scheme):
        """`light` or `dark`."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.tell("Emulation.setEmulatedMedia", features=[feature])

    def tell(self, command, **parameters):
        """Something that WebDriver has no word for."""
        return call(f"{self.session}/goog/cdp/execute", {"cmd": command, "params": parameters})

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(call(f"{self.session}/screenshot")))

    def quit(self):
        call(self.session, method="DELETE")


def call(url, body=None, method=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=CALL_S_MAX) as response:
            return json.load(response)["value"]
    except urllib.error.HTTPError as refusal:
        with refusal:
            problem = json.load(refusal)["value"]
        kind = StaleElement if problem["error"] == "stale element reference" else AssertionError
        raise kind(f"{problem['error']}: {problem['message']}") from refusal


def found(program):
    path = shutil.which(program)
    assert path, f"{program} is missing; `cargo xtask test --only install` installs it"
    return path


@contextlib.contextmanager
def running_browser(directory):
    log = directory / "chromedriver.log"
    with log.open("wb") as output:
        driver = subprocess.Popen(
            [found("chromedriver"), "--port=0"],
            env={**os.environ, "HOME": str(directory)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        browser = Browser(f"http://127.0.0.1:{chosen_port(driver, log)}", directory / "profile")
        try:
            yield browser
        finally:
            browser.quit()
    finally:
        driver.terminate()
        driver.wait()
        print(f"--- {log.name}\n{log.read_text(errors='replace')}")


def chosen_port(driver, log):
    deadline = time.monotonic() + START_S_MAX
    while True:
        said = re.search(r"started successfully on port (\d+)", log.read_text(errors="replace"))
        if said:
            return said[1]
        assert driver.poll() is None and time.monotonic() < deadline, "chromedriver did not start"
        time.sleep(0.05)
