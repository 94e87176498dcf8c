"""`reveille workflow graph`, on files and on what the server has."""

import json
import pathlib
import xml.etree.ElementTree as xml

import pytest

EXAMPLES = sorted((pathlib.Path(__file__).parents[2] / "examples" / "workflows").glob("*.yaml"))
SVG = "{http://www.w3.org/2000/svg}"


def ok(done):
    assert done.returncode == 0, done.stderr
    return done.stdout


def save_all(server):
    # A workflow that runs another one is saved after it.
    for path in sorted(EXAMPLES, key=lambda path: path.stem == "onboard"):
        ok(server.cli("workflow", "apply", str(path)))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_file_and_what_was_saved_of_it_look_the_same(server, tmp_path, path):
    save_all(server)

    drawn = ok(server.cli("workflow", "graph", str(path)))

    assert drawn == ok(server.cli("workflow", "graph", path.stem))
    assert max(len(line) for line in drawn.splitlines()) <= 80
    steps = server.call("GET", f"/api/v1/workflows/{path.stem}")[1]["steps"]
    graph = json.loads(ok(server.cli("workflow", "graph", "--json", path.stem)))
    assert {node["step_id"] for node in graph["nodes"]} == set(steps)
    assert graph == server.call("GET", f"/api/v1/workflows/{path.stem}/graph")[1]

    picture = tmp_path / "picture.svg"
    ok(server.cli("workflow", "graph", path.stem, "--svg", str(picture)))
    root = xml.fromstring(picture.read_text())
    said = {text.text for text in root.iter(f"{SVG}text")}
    assert root.tag == f"{SVG}svg" and set(steps) <= said
    assert picture.read_text() == ok(server.cli("workflow", "graph", str(path), "--svg", "-"))
