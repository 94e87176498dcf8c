"""The example in the README works as it is written."""

import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
README = HERE.parent / "README.md"
SOURCE = HERE.parent / "src"


def test_the_example_runs_as_written(server):
    example = re.search(r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)[1]
    assert len([line for line in example.splitlines() if line]) <= 15
    variables = {"REVEILLE_URL": server.http_url, "REVEILLE_KEY": server.key, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-W", "error", "-c", example]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    first, second, *_ = done.stdout.splitlines() or ["", ""]
    assert (first, second) == ("SUCCEEDED {'question': 'why?'}", "True echo-1"), done.stderr
