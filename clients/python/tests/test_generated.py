"""What is generated is what the generator makes, what is typed is typed, and every method is tried out."""

import inspect
import pathlib
import shutil
import subprocess
import sys

import pytest

from reveille import AsyncClient, Client

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parent
DOCUMENT = PACKAGE.parent.parent / "docs" / "openapi.json"


def generate(directory, *arguments):
    command = [sys.executable, str(directory / "clients" / "python" / "generate.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_generating_again_changes_nothing():
    done = generate(PACKAGE.parent.parent, "--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("path", ["src/reveille/models.py", "src/reveille/_sync/jobs.py", "src/reveille/_sync/left.py"])
def test_what_was_changed_by_hand_is_found_and_put_right(tmp_path, path):
    copy = tmp_path / "clients" / "python"
    shutil.copytree(PACKAGE / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PACKAGE / "generate.py", copy)
    (tmp_path / "docs").mkdir()
    shutil.copy(DOCUMENT, tmp_path / "docs")
    with (copy / path).open("a") as changed:
        changed.write("# more\n")

    assert generate(tmp_path, "--check").stdout == f"{path} is out of date\n"
    assert generate(tmp_path, "--check").returncode == 1
    assert generate(tmp_path).returncode == 0
    assert generate(tmp_path, "--check").returncode == 0


def test_it_is_typed():
    command = [sys.executable, "-m", "mypy", "--no-incremental", "--config-file", str(PACKAGE / "pyproject.toml")]
    done = subprocess.run(command, cwd=PACKAGE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def methods(client):
    """`jobs.submit` and so on, and `events` and `call`."""
    for name, value in vars(client).items():
        if not name.startswith("_"):
            yield from (f"{name}.{method}" for method, _ in public(value))
    yield from (name for name, _ in public(client))


def public(value):
    return [(name, method) for name, method in inspect.getmembers(value, inspect.isroutine) if not name.startswith("_")]


def test_both_clients_can_do_the_same():
    plain, for_asyncio = set(methods(Client("http://h"))), set(methods(AsyncClient("http://h")))
    assert plain ^ for_asyncio == {"close", "aclose"}


def test_every_method_is_tried_out():
    tests = "\n".join(path.read_text() for path in HERE.glob("*.py"))
    calls = [f".{method}(" if "." in method else f"client.{method}(" for method in methods(Client("http://h"))]
    assert [call for call in calls if call not in tests] == []
