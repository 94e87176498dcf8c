"""`reveille demo`: the story that a newcomer watches happens as it is told."""

import subprocess

DEMO_S_MAX = 300


def test_the_story_is_told_to_its_end(binary):
    told = subprocess.run([binary, "demo", "--fast"], capture_output=True, text=True, timeout=DEMO_S_MAX, check=False)
    assert told.returncode == 0, told.stderr
    for words in [
        "All six are known",
        "All twenty succeeded",
        "finished it, at try 2",
        "Denied: agents do not touch production data",
        "It ended as SUCCEEDED",
        "its 2 compensations ran, the last first",
    ]:
        assert words in told.stdout, told.stdout
