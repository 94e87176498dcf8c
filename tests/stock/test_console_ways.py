"""Ways to the console: without its script, on a phone, by keyboard alone, as an operator of one tenant."""

import pytest

from harness import wait_until
from pages import SHOWN_S_MAX, agent

PHONE = (390, 844)
TAB, ENTER = "\ue004", "\ue007"
TABS_MAX = 60
SECRET = "AKIAIOSFODNN7EXAMPLE"
# Longer than any screen, and nowhere to break it.
LONG = "a_name_that_is_longer_than_any_phone_is_wide_and_has_nowhere_to_break" * 2
WIDTHS = "return [document.documentElement.scrollWidth, window.innerWidth];"
# What sticks out, for whoever has to mend it.
WIDE = """
    return [...document.querySelectorAll('body *')].filter(one => one.getBoundingClientRect().right > screen.width + 1)
        .filter(one => !one.closest('.scroll, .picture, pre')).slice(0, 3).map(one => one.outerHTML.slice(0, 200));
"""
JOBS = "return [...document.querySelectorAll('tbody tr')].map(row => row.cells[1].innerText);"
TENANTS = "return [...new Set([...document.querySelectorAll('tbody tr')].map(row => row.cells[3].innerText))];"
FOCUSED = "const one = document.activeElement; return [one.tagName, one.innerText];"
IS_OUTLINED = """
    const style = getComputedStyle(document.activeElement);
    return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
"""


@pytest.fixture
def without_scripts(browser):
    browser.allow_scripts(False)
    yield
    browser.allow_scripts(True)


@pytest.fixture
def phone(browser):
    browser.become_a_phone(*PHONE)
    yield
    browser.become_a_desk()


def test_pages_filters_and_buttons_work_without_the_script(console, without_scripts):
    ann = console.server.create_key("default", "read", "write")
    plain, other = console.server.submit("job.echo", {"n": 1}), console.server.submit("job.other", {"n": 2})
    careful = console.server.submit("job.careful", {"n": 3})
    console.sign_in(ann)
    console.sees("1 job wants your approval")
    console.open("/ui/jobs")
    assert sorted(console.browser.run(JOBS)) == sorted([plain, other, careful])
    console.browser.fill("form.filter input[name=topic]", "job.other")
    console.browser.press("form.filter button")
    wait_until("the jobs of one topic", lambda: console.browser.run(JOBS) == [other])
    console.picture("without-script")
    console.browser.press("tbody a")
    wait_until("its page", lambda: console.browser.path() == f"/ui/jobs/{other}")
    console.browser.press(".acts button.danger")
    wait_until("the cancelled job", lambda: "CANCELLED" in console.browser.text("h1"))
    console.open(f"/ui/approvals/{careful}")
    console.browser.press("form.decide button.danger")
    wait_until("its page", lambda: console.browser.path() == f"/ui/jobs/{careful}")
    assert [console.server.job(job)["state"] for job in (other, careful)] == ["CANCELLED", "DENIED"]


def test_an_operator_without_the_script_chooses_a_tenant(console, without_scripts):
    for tenant in ["acme", "rivals"]:
        submitted(console.server, tenant)
    console.sign_in(at="/ui/jobs")
    assert sorted(console.browser.run(TENANTS)) == ["acme", "rivals"]
    console.browser.press("#tenant option[value=acme]")
    console.browser.press("form.tenant noscript button, form.tenant button")
    wait_until("the start", lambda: console.browser.path() == "/")
    console.open("/ui/jobs")
    assert console.browser.run(TENANTS) == ["acme"]


def test_an_operator_sees_the_jobs_of_the_chosen_tenant_alone(console):
    jobs = {tenant: submitted(console.server, tenant) for tenant in ["acme", "rivals"]}
    console.sign_in(at="/ui/jobs")
    assert sorted(console.browser.run(JOBS)) == sorted(jobs.values())
    console.browser.press("#tenant option[value=rivals]")
    wait_until("the start", lambda: console.browser.path() == "/")
    console.sees(jobs["rivals"])
    assert jobs["acme"] not in console.browser.text("main")
    console.open("/ui/jobs")
    assert console.browser.run(JOBS) == [jobs["rivals"]]
    console.open("/ui/audit")
    assert jobs["rivals"] in console.browser.text("main") and jobs["acme"] not in console.browser.text("main")


def submitted(server, tenant):
    key = server.create_key(tenant, "read", "write")
    status, job = server.call("POST", "/api/v1/jobs", {"topic": "job.echo", "context": {}}, key=key)
    assert status == 200, job
    return job["job_id"]


def test_no_page_scrolls_sideways_on_a_phone(console, tmp_path, phone):
    pages = furnished(console, tmp_path)
    assert "sign-in" in pages[0]
    console.browser.open(console.server.http_url + pages[0])
    check_width(console, pages[0])
    console.sign_in()
    for page in pages[1:]:
        console.open(page)
        check_width(console, page)
        console.picture("phone" + page.split("?")[0].replace("/", "-"))


def check_width(console, page):
    wide, screen = console.browser.run(WIDTHS)
    assert (screen, wide) == (PHONE[0], PHONE[0]), (page, wide, console.browser.run(WIDE))


def furnished(console, tmp_path):
    """Every page, with something on it that is as wide as it gets."""
    server = console.server
    ingest = server.create_key("default", "read", "write", "ingest")
    beat = {"agent_id": "a1", "agent_name": LONG, "status": "idle", "active_sessions": 0, "host": LONG, "region": LONG}
    assert server.call("POST", "/v1/agents/heartbeat", beat, key=ingest)[0] == 202
    steps = {
        "fetch": {"type": "worker", "topic": "job.echo", "input": {"n": 1}},
        "wait": {"type": "delay", "delay_sec": 1000, "depends_on": ["fetch"], "name": LONG},
        "report": {"type": "worker", "topic": "job.echo", "depends_on": ["wait"]},
    }
    status, answer = server.call("POST", "/api/v1/workflows", {"id": "wide", "name": LONG, "steps": steps})
    assert status == 201, answer
    with agent(server, tmp_path, "--worker-id", "hand"):
        server.wait_for_workers("hand")
        run = server.call("POST", "/api/v1/workflows/wide/runs", {"input": {LONG: LONG}})[1]["run_id"]
        held = server.submit("job.echo", {"note": f"{LONG} {SECRET}"})
        failed = server.ended_job(server.submit("job.echo", {"fail": True, LONG: LONG}))
        wait_until("a quarantine", lambda: server.job(held)["state"] == "OUTPUT_QUARANTINED")
    body = {"topic": "job.careful", "context": {LONG: LONG}, "team_id": LONG, "labels": {"long": LONG}}
    status, careful = server.call("POST", "/api/v1/jobs", body, key=ingest)
    assert status == 200, careful
    return [
        "/ui/sign-in", "/", "/ui/fleet", "/ui/fleet?by=tenant", "/ui/workers/a1?contract=voicegateway&tenant=default",
        "/ui/jobs", "/ui/jobs/new", f"/ui/jobs/{failed['id']}", f"/ui/jobs/{careful['job_id']}", "/ui/approvals",
        f"/ui/approvals/{careful['job_id']}", "/ui/quarantine", "/ui/dlq", "/ui/workflows", "/ui/workflows/wide",
        "/ui/runs", f"/ui/runs/{run}", "/ui/policy", "/ui/audit", "/ui/system",
    ]  # fmt: skip


def test_a_job_is_approved_by_keyboard_alone(console):
    ann = console.server.create_key("default", "read", "write")
    job_id = console.server.submit("job.careful", {"n": 1})
    console.sign_in(ann, at=f"/ui/approvals/{job_id}")
    walk_to(console, ["BUTTON", "Approve"])
    console.picture("focus")
    console.browser.type_key(ENTER)
    wait_until("the job's page", lambda: console.browser.path() == f"/ui/jobs/{job_id}")
    status, approvals = console.server.call("GET", "/api/v1/approvals?include_resolved=true")
    assert [one["approval_status"] for one in approvals["items"]] == ["approved"]


def walk_to(console, wanted):
    """With the Tab key, as far as it takes. Where one stands must be seen at every step."""
    for _ in range(TABS_MAX):
        console.browser.type_key(TAB)
        where = console.browser.run(FOCUSED)
        assert where[0] == "BODY" or console.browser.run(IS_OUTLINED), where
        if where == wanted:
            return
    raise AssertionError(f"{wanted} is not reached with {TABS_MAX} tabs")


def test_who_walks_by_keyboard_stays_there_while_the_page_changes(console, tmp_path):
    console.server.submit("job.echo", {"n": 1})
    console.sign_in(at="/ui/jobs")
    walk_to(console, ["BUTTON", "Show"])
    console.browser.type_key(TAB)
    link = console.browser.run(FOCUSED)
    assert link[0] == "A", link
    with agent(console.server, tmp_path, "--worker-id", "hand"):
        wait_until("the end", lambda: "SUCCEEDED" in console.browser.text("tbody"), SHOWN_S_MAX)
    assert console.browser.run(FOCUSED) == link


def test_the_system_page_says_who_holds_what_and_what_is_owed(console):
    console.server.submit("job.nobody", {"n": 1})
    console.sign_in(at="/ui/system")
    console.sees("1 owed, the next in", "[data-part=timers]")
    # The net takes its lock within half a minute of the start, and keeps it.
    wait_until("a lock", lambda: "looks for jobs that" in console.open("/ui/system"), 60)
    console.picture("system")
