"""A client that somebody else's generator makes of `docs/openapi.json` works with a running server."""

import importlib
import json
import pathlib
import subprocess
import sys

import pytest

DOCUMENT = pathlib.Path(__file__).resolve().parents[3] / "docs" / "openapi.json"
METHODS = {"get", "post", "patch", "delete"}


def operations_of(document):
    for path, item in document["paths"].items():
        yield from ((path, operation) for method, operation in item.items() if method in METHODS)


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """Imports a module of the generated client, and knows what the generator said."""
    directory = tmp_path_factory.mktemp("off_the_shelf")
    target = directory / "somebody_elses"
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"]
    command += ["--path", str(DOCUMENT), "--output-path", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(directory))
    yield lambda name: importlib.import_module(f"somebody_elses.{name}" if name else "somebody_elses")
    sys.path.remove(str(directory))


@pytest.fixture
def theirs(generated, server):
    return generated("").AuthenticatedClient(
        base_url=server.http_url, token=server.key, prefix="", auth_header_name="X-API-Key"
    )


def test_every_operation_is_generated(generated):
    made = pathlib.Path(generated("").__file__).parent.glob("api/*/*.py")
    made = {path.stem for path in made if path.stem != "__init__"}
    asked = [operation["operationId"] for _, operation in operations_of(json.loads(DOCUMENT.read_text()))]
    assert (sorted(asked), len(asked)) == (sorted(made), len(made))


@pytest.mark.parametrize("value", [{"x": 1}, [1, "a"], "a text", 7])
def test_a_job_is_submitted_fetched_and_listed(generated, theirs, value):
    submit, get, list_ = (generated(f"api.jobs.jobs_{name}") for name in ("submit", "get", "list"))
    request = generated("models").SubmitRequest(topic="job.echo", context=value)

    submitted = submit.sync(client=theirs, body=request)
    job = get.sync(submitted.job_id, client=theirs, wait="60s")

    assert job.state == "SUCCEEDED"
    assert (job.to_dict()["result"], job.to_dict()["context"]) == (value, value)
    assert submitted.job_id in [job.id for job in list_.sync(client=theirs, topic="job.echo").items]


def test_what_is_refused_is_an_answer_with_a_code(generated, theirs):
    submit, get = generated("api.jobs.jobs_submit"), generated("api.jobs.jobs_get")
    request = generated("models").SubmitRequest(topic="nope", context={})

    for answer, status, code in [
        (get.sync_detailed("nope", client=theirs), 404, "not_found"),
        (submit.sync_detailed(client=theirs, body=request), 400, "invalid_request"),
    ]:
        assert (answer.status_code, json.loads(answer.content)["code"]) == (status, code)


def test_a_run_may_give_any_json(generated, theirs):
    save, start, get = (
        generated(f"api.{name}")
        for name in ("workflows.workflows_save", "runs.workflows_start", "runs.workflow_runs_get")
    )
    models = generated("models")
    document = {"id": "theirs", "steps": {"only": {"type": "transform", "input": "a text"}}, "output": "a text"}

    save.sync(client=theirs, body=models.WorkflowsSaveBody.from_dict(document))
    started = start.sync("theirs", client=theirs, body=models.StartBody())
    run = get.sync(started.run_id, client=theirs, wait="60s")

    assert (run.status, run.output) == ("succeeded", "a text")
