"""`reveille workflow graph` and `dry-run`, on files and on what the server has."""

import json
import pathlib
import xml.etree.ElementTree as xml

import pytest

EXAMPLES = sorted((pathlib.Path(__file__).parents[2] / "examples" / "workflows").glob("*.yaml"))
RESEARCH = str(next(path for path in EXAMPLES if path.stem == "research"))
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


def test_a_dry_run_of_a_file_says_what_would_become_of_it_and_does_nothing(server):
    given = json.dumps({"question": "why?", "sources": ["a", "b", "c"]})

    told = ok(server.cli("workflow", "dry-run", RESEARCH, "--input", given))

    rows = {line.split()[0]: line for line in told.splitlines()[1:]}
    assert "running" in rows["read"] and "builtin-allow" in rows["read"] and "3 rounds" in rows["read"]
    assert "input rests on steps.read" in rows["write"]
    assert server.call("GET", "/api/v1/workflows")[1] == []
    assert server.call("GET", "/api/v1/workflow-runs")[1]["items"] == []
    assert server.call("GET", "/api/v1/jobs")[1]["items"] == []


def test_a_dry_run_of_what_was_saved_fails_where_a_step_would(server, tmp_path):
    document = {"id": "w", "name": "w", "steps": {"a": {"type": "transform", "input": "${1 / input.n}"}}}
    path = tmp_path / "w.json"
    path.write_text(json.dumps(document))
    ok(server.cli("workflow", "apply", str(path)))

    good = json.loads(ok(server.cli("workflow", "dry-run", "w", "--json", "--input", '{"n": 1}')))
    bad = server.cli("workflow", "dry-run", "w", "--input", '{"n": 0}')
    missing = server.cli("workflow", "dry-run", "nothing")

    assert (good["version"], good["steps"][0]["status"], good["steps"][0]["output"]) == (1, "running", 1)
    assert bad.returncode == 3 and "step a: it would fail" in bad.stderr, (bad.stdout, bad.stderr)
    assert missing.returncode == 1 and "404" in missing.stderr
