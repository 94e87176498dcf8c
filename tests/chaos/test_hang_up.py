"""Submitters that hang up before they are answered, and ask again later: what was taken in is also done."""

import json
import socket
import struct
import time

from rig import assert_all_succeeded, assert_no_panic

JOBS = 300
TAIL_S_MAX = 20
NO_GOODBYE = struct.pack("ii", 1, 0)


def hang_up_on(server, body, after_s):
    data = json.dumps(body).encode()
    head = (
        "POST /api/v1/jobs HTTP/1.1\r\nHost: hasty\r\nContent-Type: application/json\r\n"
        f"X-API-Key: {server.key}\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    with socket.create_connection(server.address("http"), timeout=10) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_GOODBYE)
        connection.sendall(head.encode() + data)
        time.sleep(after_s)


def test_a_job_whose_submitter_hung_up_is_not_forgotten(server, start_echo, dice):
    start_echo("echo-1")
    inputs = [{"number": number} for number in range(JOBS)]
    bodies = [
        {"topic": "job.echo", "context": inputs[number], "idempotency_key": f"input-{number}"}
        for number in range(JOBS)
    ]
    for body in bodies:
        hang_up_on(server, body, after_s=dice.uniform(0, 0.002))

    acknowledged = {}
    for number, body in enumerate(bodies):
        status, answer = server.call("POST", "/api/v1/jobs", body)
        assert status == 200, (status, answer)
        acknowledged[number] = answer["job_id"]

    assert_all_succeeded(server, inputs, acknowledged, TAIL_S_MAX)
    assert_no_panic(server)
