"""Programs of the repository that take too long for a test can be started, and know the parts that they borrow."""

import pathlib
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


def test_what_measures_capacity_can_be_started():
    said = subprocess.run([sys.executable, REPOSITORY / "bench" / "capacity", "--help"], capture_output=True, text=True)
    assert "--only" in said.stdout, said.stderr
