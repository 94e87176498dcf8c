"""Makes docs/console.png and docs/demo.txt: what the README shows and links to, from a real server and a real browser.

    python3 docs/record.py [BINARY]

It needs chromium and chromedriver, which `cargo xtask test --only install` installs.
"""

import pathlib
import subprocess
import sys
import tempfile

DOCS = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent / "tests" / "stock"))

from browser import running_browser  # noqa: E402
from harness import wait_until  # noqa: E402

SECONDS_MAX = 180


def main():
    binary = str(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "target/release/reveille").resolve())
    told = subprocess.run([binary, "demo", "--fast"], capture_output=True, text=True, timeout=SECONDS_MAX, check=True)
    (DOCS / "demo.txt").write_text("$ reveille demo\n" + told.stdout)
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen([binary, "demo"], stdout=subprocess.PIPE, text=True) as demo:
        try:
            address = demo.stdout.readline().split()[1]
            with running_browser(pathlib.Path(folder)) as browser:
                browser.open(address)
                # The third scene: a worker is dead, and the others are at work.
                for line in demo.stdout:
                    if line.startswith("3."):
                        break
                busy = "return document.querySelectorAll('.tile.busy').length > 0;"
                wait_until("a worker at work", lambda: browser.run(busy), SECONDS_MAX)
                browser.screenshot(DOCS / "console.png")
        finally:
            demo.terminate()
    print("docs/demo.txt and docs/console.png are new")


if __name__ == "__main__":
    main()
