"""VoiceGateway's own console, as its wheel brings it, in a real browser, on our server."""

import pathlib
import re

import pytest

import voicegateway
from browser import running_browser
from console_proxy import running_proxy
from harness import running_server, wait_until
from voices import beat_of, send_beat

FILES = (pathlib.Path(voicegateway.__file__).parent / "_console_dist").resolve()
TTL_S = 6
SHOWN_S_MAX = 30
# Every agent on the canvas, with how faded it is drawn.
DRAWN = """
    return Object.fromEntries([...document.querySelectorAll('[data-testid^="agent-"] img')]
        .map(image => [image.alt, image.style.filter]));
"""
TEXT = "return document.body.innerText;"
FADED = "opacity(0.4)"
PALE = "opacity(0.7)"

pytestmark = pytest.mark.skipif(not FILES.is_dir(), reason="this wheel of voicegateway brings no console")


@pytest.fixture
def server(binary, tmp_path):
    settings = {"REVEILLE_FLEET_VOICEGATEWAY_TTL_SECONDS": str(TTL_S)}
    with running_server(binary, tmp_path, settings) as server:
        yield server


def names_of_the_demo():
    """What the console shows when it gets nothing: agents that nobody runs."""
    (script,) = FILES.glob("assets/*.js")
    names = re.search(r'\["(Claw-Alpha"(?:,"[^"]+")+)\]', script.read_text())
    assert names, "the console has other demo agents by now"
    return set(re.findall(r'[^",]+', names[1]))


def test_the_console_shows_our_agents_and_nobody_elses(server, tmp_path):
    ingest = server.create_key("shop", "ingest")

    def beat(name, status="idle", sessions=0, key=ingest):
        beat = beat_of(f"id-{len(name)}", agent_name=name, status=status, active_sessions=sessions, host="box")
        assert send_beat(server, key, beat).status == 202

    beat("neighbour", key=server.create_key("neighbours", "ingest"))
    beating = {"night-shift"}
    proxy = running_proxy(server, server.create_key("shop", "read"), FILES)
    with proxy as url, running_browser(tmp_path) as browser:

        def wait_for(what, is_shown):
            """Looks at the console until it is so; meanwhile one agent is busy, the other may be silent."""

            def look():
                beat("reception", "busy", 2)
                for name in beating:
                    beat(name)
                return is_shown(browser.run(DRAWN), browser.run(TEXT).splitlines())

            wait_until(what, look, SHOWN_S_MAX)

        beat("reception", "busy", 2)
        beat("night-shift")
        browser.open(url)
        wait_for("both agents", lambda drawn, lines: drawn.keys() == {"reception", "night-shift"} <= set(lines))
        wait_for("one at work", lambda drawn, lines: drawn["reception"] == "none" and "2 live calls" in lines)
        wait_for("one idle", lambda drawn, _: PALE in drawn["night-shift"])
        wait_for("the counts", lambda _, lines: "FLEET: 2 AGENTS // MACHINES: 1" in lines)

        beating.clear()
        wait_for("one offline", lambda drawn, _: FADED in drawn["night-shift"] and drawn["reception"] == "none")
        browser.screenshot(tmp_path / "console.png")
        beating.add("night-shift")
        wait_for("it is back", lambda drawn, _: PALE in drawn["night-shift"])

        page = browser.run("return document.documentElement.outerHTML;")
        assert not {name for name in names_of_the_demo() | {"neighbour"} if name in page}
