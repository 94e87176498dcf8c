"""The console in a real browser: what somebody sees and does at three in the morning.

Pictures of the pages are kept in the folder that `REVEILLE_SCREENSHOTS` names, or else beside the test's other files.
"""

import contextlib
import gzip
import json
import re

from harness import Answer, wait_until
from pages import SHOWN_S_MAX, agent

SECRET = "AKIAIOSFODNN7EXAMPLE"
EVIL = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
# A mark that a reload would wipe off.
MARK = "window.isTheSamePage = true;"
IS_MARKED = "return window.isTheSamePage === true;"
TILES = """
    return Object.fromEntries([...document.querySelectorAll('.tile')]
        .map(tile => [tile.querySelector('b').innerText, tile.className.replace('tile ', '')]));
"""


def test_only_a_good_key_opens_the_door(console):
    console.browser.open(console.server.http_url + "/ui/jobs?state=RUNNING")
    assert console.browser.path() == "/ui/sign-in"
    console.browser.fill("#key", "vk_wrong")
    console.browser.press("button[type=submit]")
    console.sees("wrong, expired or revoked")
    console.browser.fill("#key", console.server.key)
    console.browser.press("button[type=submit]")
    wait_until("the page that was asked for", lambda: console.browser.path() == "/ui/jobs")
    assert console.browser.run("return document.cookie;") == "", "no script can read the session"
    console.browser.press("header form button.plain")
    wait_until("the door", lambda: console.browser.path() == "/ui/sign-in")


def test_a_worker_appears_and_turns_grey_without_a_reload(console, tmp_path):
    console.sign_in(at="/ui/fleet")
    console.browser.run(MARK)
    with agent(console.server, tmp_path, "--worker-id", "night-owl") as worker:
        wait_until("a tile", lambda: console.browser.run(TILES) == {"night-owl": "online"}, SHOWN_S_MAX)
        console.picture("fleet")
        worker.kill()
        # A CAP worker that is dead is known no longer.
        wait_until("no tile", lambda: console.browser.run(TILES) == {}, SHOWN_S_MAX)
    assert console.browser.run(IS_MARKED)


def test_an_agent_that_falls_silent_turns_grey(console):
    key = console.server.create_key("shop", "ingest")
    beat = {"agent_id": "a1", "agent_name": "reception", "status": "idle", "active_sessions": 0, "host": "box"}
    status, _ = console.server.call("POST", "/v1/agents/heartbeat", beat, key=key)
    assert status == 202
    console.sign_in(at="/ui/fleet")
    wait_until("a tile", lambda: console.browser.run(TILES) == {"reception": "online"}, SHOWN_S_MAX)
    beat["status"] = "offline"
    console.server.call("POST", "/v1/agents/heartbeat", beat, key=key)
    wait_until("a grey tile", lambda: console.browser.run(TILES) == {"reception": "offline"}, SHOWN_S_MAX)


def test_a_job_that_waits_says_why_and_then_runs(console, tmp_path):
    job_id = console.server.submit("job.echo", {"hello": "you"})
    console.sign_in(at=f"/ui/jobs/{job_id}")
    console.sees("No live worker", ".reason")
    console.picture("job-waits")
    console.browser.run(MARK)
    with agent(console.server, tmp_path, "--worker-id", "late"):
        console.sees("SUCCEEDED", "h1")
    console.sees('"hello": "you"')
    assert console.browser.run(IS_MARKED)
    console.picture("job-done")


def test_somebody_else_approves_from_the_inbox(console, tmp_path):
    ann = console.server.create_key("default", "read", "write")
    with agent(console.server, tmp_path, "--worker-id", "hand", "--topic", "job.careful"):
        job_id = console.server.submit("job.careful", {"delete": "everything"})
        console.sign_in(at="/ui/approvals")
        console.sees("yours: somebody else decides")
        console.sign_in(ann)
        console.sees("1 job wants your approval")
        console.open("/ui/approvals")
        console.browser.press("td a.button")
        console.sees("a person must look")
        console.sees('"delete": "everything"')
        console.picture("approval")
        console.browser.fill("#reason", "looked at it")
        console.browser.press("form.decide button.main")
        wait_until("the job's page", lambda: console.browser.path() == f"/ui/jobs/{job_id}")
        console.sees("SUCCEEDED", "h1")
    status, approvals = console.server.call("GET", "/api/v1/approvals?include_resolved=true")
    assert [(one["approval_status"], one["resolved_comment"]) for one in approvals["items"]] == [("approved", "looked at it")]


def test_a_held_result_is_looked_at_and_released(console, tmp_path):
    ann = console.server.create_key("default", "read", "write")
    with agent(console.server, tmp_path, "--worker-id", "leaky"):
        job_id = console.server.submit("job.echo", {"note": f"use {SECRET} today"})
        wait_until("a quarantine", lambda: console.server.job(job_id)["state"] == "OUTPUT_QUARANTINED")
        console.sign_in(ann, at="/ui/quarantine")
        console.sees("it says too much")
        shown = console.browser.text("pre.blob")
        assert "use " in shown and " today" in shown and SECRET not in console.browser.run("return document.documentElement.outerHTML;")
        assert console.browser.run("return document.querySelectorAll('pre.blob mark').length;") == 1
        console.picture("quarantine")
        console.browser.press("article button.main")
        console.sees("No result is held back.")
    assert console.server.job(job_id)["result"] == {"note": f"use {SECRET} today"}


def test_a_group_of_dead_letters_is_sent_again(console, tmp_path):
    with agent(console.server, tmp_path, "--worker-id", "clumsy", "--max-parallel", "4"):
        for _ in range(3):
            job = console.server.ended_job(console.server.submit("job.echo", {"fail": True}))
            assert job["state"] == "FAILED"
        console.sign_in(at="/ui/dlq")
        console.sees("3", ".groups")
        console.picture("dead-letters")
        console.browser.press(".groups button")
        console.sees("3 jobs were sent again.")


def test_a_runs_picture_completes_live(console, tmp_path):
    steps = {
        "fetch": {"type": "worker", "topic": "job.echo", "input": {"sleep_s": 1}},
        "wait": {"type": "delay", "delay_sec": 1, "depends_on": ["fetch"]},
        "report": {"type": "worker", "topic": "job.echo", "depends_on": ["wait"], "input": {"n": 1}},
    }
    status, answer = console.server.call("POST", "/api/v1/workflows", {"id": "story", "name": "A story", "steps": steps})
    assert status == 201, answer
    console.sign_in(at="/ui/workflows/story")
    console.sees("A story")
    with agent(console.server, tmp_path, "--worker-id", "teller"):
        console.browser.press("summary")
        console.browser.press("details form button")
        wait_until("the run's page", lambda: console.browser.path().startswith("/ui/runs/"))
        console.browser.run(MARK)
        states = "return [...document.querySelectorAll('svg.flow .box')].map(box => box.getAttribute('class'));"
        wait_until("a step under way", lambda: any("running" in one for one in console.browser.run(states)), SHOWN_S_MAX)
        console.picture("run")
        wait_until("all steps done", lambda: all("succeeded" in one for one in console.browser.run(states)), SHOWN_S_MAX)
        console.sees("succeeded", "h1")
    assert console.browser.run(IS_MARKED)
    console.picture("run-done")


def test_another_tenants_key_sees_none_of_it(console, tmp_path):
    mine = console.server.create_key("acme", "read", "write", "ingest")
    other = console.server.create_key("rivals", "read", "write")
    beat = {"agent_id": "a1", "agent_name": "acme-agent", "status": "idle", "active_sessions": 0, "host": "box"}
    console.server.call("POST", "/v1/agents/heartbeat", beat, key=mine)
    status, job = console.server.call("POST", "/api/v1/jobs", {"topic": "job.careful", "context": {"x": "acme-secret"}}, key=mine)
    assert status == 200
    status, _ = console.server.call("POST", "/api/v1/workflows", {"id": "acme-flow", "name": "f", "steps": {"a": {"type": "delay", "delay_sec": 1}}}, key=mine)
    assert status == 201
    console.sign_in(other)
    for page in ["/", "/ui/fleet", "/ui/jobs", "/ui/approvals", "/ui/quarantine", "/ui/dlq", "/ui/workflows", "/ui/runs", "/ui/audit"]:
        text = console.open(page)
        assert "acme" not in text and job["job_id"] not in text, page
    assert "no such job" in console.open(f"/ui/jobs/{job['job_id']}")
    assert "no such" in console.open(f"/ui/approvals/{job['job_id']}")
    assert "no such" in console.open("/ui/workflows/acme-flow").lower()
    assert "admin" in console.open("/ui/system")
    assert "System" not in console.open("/")
    console.sign_in(mine, at="/ui/jobs")
    console.sees(job["job_id"])


def test_a_worker_of_all_shows_each_tenant_its_own_jobs(console, tmp_path):
    acme, plain = console.server.create_key("acme", "read", "write"), console.server.create_key("default", "read")
    with agent(console.server, tmp_path, "--worker-id", "hand"):
        console.server.wait_for_workers("hand")
        body = {"topic": "job.echo", "context": {"sleep_s": 20}}
        status, job = console.server.call("POST", "/api/v1/jobs", body, key=acme)
        assert status == 200
        wait_until("the job runs", lambda: console.server.job(job["job_id"])["worker_id"] == "hand")
        page = "/ui/workers/hand?contract=cap&tenant=default"
        console.sign_in(plain, at=page)
        console.sees("1 job")
        assert job["job_id"] not in console.browser.text("body")
        console.sign_in(at=page)
        console.sees(job["job_id"])


def test_what_strangers_send_is_shown_as_text(console, tmp_path):
    server = console.server
    ingest = server.create_key("default", "ingest", "read", "write")
    beat = {"agent_id": "evil-1", "agent_name": EVIL, "status": "idle", "active_sessions": 0, "host": EVIL, "region": EVIL}
    assert server.call("POST", "/v1/agents/heartbeat", beat, key=ingest)[0] == 202
    body = {
        "topic": "job.careful",
        "context": {EVIL: EVIL},
        "principal_id": EVIL,
        "actor_id": EVIL,
        "team_id": EVIL,
        "capability": EVIL,
        "risk_tags": [EVIL],
        "labels": {"evil": EVIL},
        "idempotency_key": EVIL,
    }
    status, job = server.call("POST", "/api/v1/jobs", body, key=ingest)
    assert status == 200, job
    step = {"type": "delay", "delay_sec": 0, "name": EVIL}
    flow = {"id": "evil", "name": EVIL, "description": EVIL, "steps": {"a": step}}
    status, answer = server.call("POST", "/api/v1/workflows", flow, key=ingest)
    assert status == 201, answer
    status, run = server.call("POST", "/api/v1/workflows/evil/runs", {"input": {"x": EVIL}}, key=ingest)
    assert status in (200, 201), run
    console.sign_in()
    job_id = job["job_id"]
    reject = {"reason": EVIL}
    pages = [
        "/", "/ui/fleet", "/ui/fleet?q=" + "%3Cscript%3E", "/ui/workers/evil-1?contract=voicegateway&tenant=default",
        "/ui/jobs", "/ui/jobs?topic=job.careful&team=%3Cscript%3Ealert(1)%3C%2Fscript%3E", f"/ui/jobs/{job_id}",
        "/ui/approvals", f"/ui/approvals/{job_id}", "/ui/workflows", "/ui/workflows/evil", f"/ui/runs/{run['run_id']}",
        "/ui/runs?workflow_id=evil", "/ui/audit", "/ui/policy", "/ui/system", "/ui/quarantine", "/ui/dlq",
    ]  # fmt: skip
    shown = 0
    for _ in range(2):
        for page in pages:
            console.open(page)
            source = console.browser.run("return document.body.innerHTML;")
            assert console.browser.run("return document.title;") != "owned", page
            assert console.browser.run("return document.querySelectorAll('main script, main img').length;") == 0, page
            shown += "&lt;script&gt;document" in source
        assert server.call("POST", f"/api/v1/approvals/{job_id}/reject", reject)[0] in (200, 409)
    assert shown >= 6, "what was sent is on the pages, as text"


def test_a_form_of_another_site_does_nothing(console):
    """What a browser sends along by itself is not enough."""
    server = console.server
    job_id = server.submit("job.echo", {})
    answer = server.exchange("POST", "/ui/sign-in", None, {"Content-Type": "application/x-www-form-urlencoded"})
    assert answer.status in (400, 415, 422), "an empty form signs nobody in"
    cookie = signed_in(server)
    form = {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"}
    cancel = f"/ui/jobs/{job_id}/cancel"
    assert post(server, cancel, "seal=", {**form, "Sec-Fetch-Site": "cross-site"}).status == 403
    assert post(server, cancel, "seal=", {**form, "Sec-Fetch-Site": "same-origin"}).status == 403, "no seal"
    assert server.job(job_id)["state"] != "CANCELLED"
    page = server.exchange("GET", f"/ui/jobs/{job_id}", None, {"Cookie": cookie})
    seal = re.search(r'name="seal" value="([0-9a-f]+)"', page.text)[1]
    assert post(server, cancel, f"seal={seal}", {**form, "Sec-Fetch-Site": "same-origin"}).status == 303
    assert server.job(job_id)["state"] == "CANCELLED"
    assert "default-src 'none'" in page.headers["content-security-policy"]


def test_a_revoked_key_ends_its_sessions(console):
    server = console.server
    secret = server.create_key("acme", "read")
    cookie = signed_in(server, secret)
    assert server.exchange("GET", "/ui/jobs", None, {"Cookie": cookie}).status == 200
    keys = server.call("GET", "/api/v1/auth/keys")[1]["items"]
    (key,) = [key["id"] for key in keys if key["tenant"] == "acme"]
    assert server.call("DELETE", f"/api/v1/auth/keys/{key}")[0] == 204
    assert server.exchange("GET", "/ui/jobs", None, {"Cookie": cookie}).status == 303
    forged = re.sub(r"=key_[0-9a-f]+", "=" + [key["id"] for key in keys if key["tenant"] == "default"][0], cookie)
    assert server.exchange("GET", "/ui/jobs", None, {"Cookie": forged}).status == 303


def signed_in(server, key=None):
    answer = post(server, "/ui/sign-in", f"key={key or server.key}", {"Content-Type": "application/x-www-form-urlencoded"})
    assert answer.status == 303, answer
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite" in cookie
    return cookie.split(";")[0]


def post(server, path, form, headers):
    with contextlib.closing(server.connection()) as connection:
        connection.request("POST", path, form, headers)
        response = connection.getresponse()
        return Answer(response.status, dict(response.getheaders()), response.read().decode())


def test_operators_look_at_one_tenant_or_all(console):
    server = console.server
    for tenant in ["acme", "rivals"]:
        key = server.create_key(tenant, "read", "write")
        status, _ = server.call("POST", "/api/v1/jobs", {"topic": "job.echo", "context": {}}, key=key)
        assert status == 200
    console.sign_in(at="/ui/jobs")
    tenants = "return [...document.querySelectorAll('tbody tr td:nth-child(4)')].map(cell => cell.innerText);"
    assert sorted(console.browser.run(tenants)) == ["acme", "rivals"]
    console.browser.run("const s = document.getElementById('tenant'); s.value = 'acme'; s.form.requestSubmit();")
    wait_until("the start", lambda: console.browser.path() == "/")
    console.open("/ui/jobs")
    assert console.browser.run(tenants) == ["acme"]
    assert json.dumps(console.browser.run("return document.getElementById('tenant').value;")) == '"acme"'


def test_no_page_is_heavy(console):
    """A browser on a bad line gets the whole of a large fleet."""
    server, key = console.server, console.server.create_key("shop", "ingest")
    for number in range(5_000):
        name = f"agent-{number:05}"
        beat = {"agent_id": name, "agent_name": name, "status": "idle", "active_sessions": 0, "host": "box"}
        assert server.call("POST", "/v1/agents/heartbeat", beat, key=key)[0] == 202
    for number in range(120):
        server.submit("job.echo", {"n": number})
    headers = {"Cookie": signed_in(server), "Accept-Encoding": "gzip"}
    for page in ["/", "/ui/fleet", "/ui/jobs", "/ui/policy", "/ui/audit", "/ui/system"]:
        with contextlib.closing(server.connection()) as connection:
            connection.request("GET", page, None, headers)
            response = connection.getresponse()
            packed = response.read()
        assert response.status == 200 and len(packed) < 300_000, (page, len(packed))
        if page == "/ui/fleet":
            assert gzip.decompress(packed).count(b'class="tile ') == 5_000
