"""Lets the published SDK judge our signatures, and sign packets for us to judge.

    pip install cap-sdk-python==2.17.0
    python check_signature.py PACKET-FILE PUBLIC-KEY-PEM SENDER-ID
        Exits 0 if the SDK accepts the packet: parsed, valid, and signed by that sender.
    python check_signature.py --sign DIRECTORY [--random COUNT]
        Has the SDK sign packets into DIRECTORY (one per file, in hex), with its keys beside them.

Packet files may be raw bytes, or hex when named `*.hex`.
"""

import argparse
import logging
import random
import sys
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from cap.packet_boundary import decode_packet, finalize_packet
from cap.pb.cordum.agent.v1 import buspacket_pb2

SENDER = "w-echo"

# Keys that are prefixes of one another, and the empty one: where serialisers disagree.
KEYS = ["workflow", "workflow_id", "workflow.x", "", "a", "ab", "b", "workfloz", "\u00e9", "Z"]


def envelope():
    packet = buspacket_pb2.BusPacket(trace_id="trace", sender_id=SENDER, protocol_version=1)
    packet.created_at.seconds = 1_700_000_000
    return packet


def request_with_maps():
    packet = envelope()
    request = packet.job_request
    request.job_id, request.topic, request.context_ptr = "j1", "job.echo", "redis://ctx:j1"
    labels = {"workflow": "1", "workflow_id": "2", "": "", "empty": ""}
    for labelled in (request.labels, request.env, request.meta.labels):
        labelled.update(labels)
    compensation = request.compensation
    for labelled in (compensation.labels, compensation.env, compensation.meta.labels):
        labelled.update(labels)
    request.budget.deadline_ms = 60_000
    return packet


def handshake():
    packet = envelope()
    packet.handshake.component_id, packet.handshake.role = SENDER, 3
    packet.handshake.supported_versions.append(1)
    packet.handshake.capabilities.update({"job": False, "job.echo": True, "": True})
    packet.handshake.ready_topics.extend(["job.echo", "job"])
    return packet


def heartbeat():
    packet = envelope()
    beat = packet.heartbeat
    beat.worker_id, beat.pool, beat.max_parallel_jobs, beat.cpu_load = SENDER, "echo", 4, 12.5
    beat.capabilities.extend(["z", "", "a"])
    beat.labels.update({"zone": "", "zone.a": "1"})
    return packet


def result():
    packet = envelope()
    packet.auth_token = "token"
    packet.job_result.job_id, packet.job_result.status = "j1", 5
    packet.job_result.worker_id, packet.job_result.result_ptr = SENDER, "redis://res:j1"
    packet.job_result.artifact_refs.add(resolver_id="r", sha256=b"\0" * 4, size_bytes=1)
    packet.job_result.artifact_refs.add()
    return packet


def alert():
    packet = envelope()
    packet.alert.message, packet.alert.severity, packet.alert.error_code_enum = "m", 3, 402
    packet.alert.source_component = SENDER
    packet.alert.details.update({"k": "", "": "v"})
    return packet


def renewal():
    """The session token (18) with a payload that comes after it (21)."""
    packet = envelope()
    packet.auth_token, packet.signature = "token", b"replaced when signed"
    challenge = packet.worker_handshake_authenticate.challenge
    for field in ("request_id", "challenge_id", "agent_id", "tenant_id", "proof_key_id", "server_key_id"):
        setattr(challenge, field, field)
    challenge.trace_id, challenge.worker_id = packet.trace_id, SENDER
    challenge.audience, challenge.sdk_version = "cordum-scheduler", "sdk"
    challenge.proof_algorithm, challenge.purpose, challenge.protocol_version = 1, 2, 1
    challenge.client_nonce, challenge.server_nonce = b"c" * 32, b"s" * 32
    challenge.issued_at.seconds, challenge.expires_at.seconds = 1_700_000_000, 1_700_000_060
    capability = packet.worker_handshake_authenticate.capability_handshake
    capability.component_id, capability.role, capability.sdk_version = SENDER, 3, "sdk"
    capability.supported_versions.append(1)
    capability.capabilities.update({"job": True, "job.echo": True})
    return packet


NAMED = [request_with_maps, handshake, heartbeat, result, alert, renewal]


def random_packet(source):
    """Any fields at all, then put right where the SDK would refuse to sign."""
    packet = buspacket_pb2.BusPacket()
    fill(source, packet)
    packet.MergeFrom(envelope())
    payload = source.choice(
        ["job_request", "job_result", "heartbeat", "alert", "job_progress", "job_cancel", "handshake"]
    )
    chosen = getattr(packet, payload)
    chosen.SetInParent()
    fill(source, chosen)
    if payload == "job_request":
        chosen.job_id, chosen.topic, chosen.step_index = "j", "job.echo", source.randrange(5)
        chosen.priority = source.randrange(4)
        for name in ("max_input_tokens", "max_output_tokens", "max_total_tokens", "deadline_ms"):
            setattr(chosen.budget, name, source.randrange(10_000))
    elif payload == "job_result":
        chosen.job_id, chosen.worker_id, chosen.status = "j", SENDER, source.randrange(1, 12)
        chosen.execution_ms = source.randrange(10_000)
    elif payload == "heartbeat":
        chosen.worker_id = SENDER
    elif payload == "alert":
        chosen.message, chosen.source_component = "m", SENDER
        chosen.severity, chosen.error_code_enum = source.randrange(1, 5), 300
    elif payload == "job_progress":
        chosen.job_id, chosen.percent, chosen.status = "j", source.randrange(101), source.randrange(12)
    elif payload == "job_cancel":
        chosen.job_id, chosen.requested_by = "j", "ops"
    else:
        chosen.component_id = SENDER
    return packet


def fill(source, message):
    for field in message.DESCRIPTOR.fields:
        if source.random() < 0.3 or field.containing_oneof:
            continue
        if field.message_type and field.message_type.GetOptions().map_entry:
            keys = source.sample(KEYS, source.randrange(len(KEYS)))
            value = field.message_type.fields_by_name["value"]
            getattr(message, field.name).update({key: scalar(source, value) for key in keys})
        elif field.is_repeated and field.message_type:
            for _ in range(source.randrange(4)):
                fill(source, getattr(message, field.name).add())
        elif field.is_repeated:
            count = source.randrange(4)
            getattr(message, field.name).extend(scalar(source, field) for _ in range(count))
        elif field.message_type:
            inner = getattr(message, field.name)
            inner.SetInParent()
            fill(source, inner)
        else:
            setattr(message, field.name, scalar(source, field))


def scalar(source, field):
    numbers = [0, 1, 127, 128, 2**31 - 1]
    signed = [*numbers, -1, -(2**31)]
    kinds = {
        field.CPPTYPE_STRING: KEYS,
        field.CPPTYPE_BOOL: [False, True],
        field.CPPTYPE_ENUM: field.enum_type and [value.number for value in field.enum_type.values],
        field.CPPTYPE_FLOAT: [0.0, 0.5, -3.25, float("inf")],
        field.CPPTYPE_DOUBLE: [0.0, 0.5, -3.25, float("inf")],
        field.CPPTYPE_INT32: signed,
        field.CPPTYPE_INT64: [*signed, 2**63 - 1, -(2**63)],
        field.CPPTYPE_UINT32: numbers,
        field.CPPTYPE_UINT64: [*numbers, 2**64 - 1],
    }
    value = source.choice(kinds[field.cpp_type])
    return value.encode() if field.type == field.TYPE_BYTES else value


def sign(directory, random_count):
    directory.mkdir(parents=True, exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (directory / "private.pem").write_bytes(private)
    write_public(directory / "public.pem", key)
    write_public(directory / "public-p384.pem", ec.generate_private_key(ec.SECP384R1()))
    packets = {make.__name__: make() for make in NAMED}
    for seed in range(random_count):
        packets[f"random-{seed:05}"] = random_packet(random.Random(seed))
    for name, packet in packets.items():
        signed = finalize_packet(packet, key).SerializeToString(deterministic=True)
        (directory / f"{name}.hex").write_text(signed.hex() + "\n")


def write_public(path, key):
    encoding, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    path.write_bytes(key.public_key().public_bytes(encoding, form))


def check(packet_path, key_path, sender):
    packet = Path(packet_path).read_bytes()
    if packet_path.endswith(".hex"):
        packet = bytes.fromhex(packet.decode())
    key = serialization.load_pem_public_key(Path(key_path).read_bytes())
    logging.basicConfig(level=logging.WARNING)
    accepted = decode_packet(packet, {sender: key}, logging.getLogger("cap"))
    if accepted is None:
        sys.exit(f"{packet_path}: the SDK refuses this packet")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--sign", type=Path)
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("check", nargs="*")
    arguments = parser.parse_args()
    if arguments.sign:
        sign(arguments.sign, arguments.random)
    elif len(arguments.check) == 3:
        check(*arguments.check)
    else:
        parser.error("expected PACKET-FILE PUBLIC-KEY-PEM SENDER-ID, or --sign DIRECTORY")


if __name__ == "__main__":
    main()
