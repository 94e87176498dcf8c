"""Holds our descriptors against those of the published SDK, field by field.

    pip install cap-sdk-python==2.17.0
    cargo run -p reveille-wire --example descriptors -- /tmp/descriptors.bin
    python compare_descriptors.py /tmp/descriptors.bin

Prints every difference and exits non-zero if there is one. Comments, language options and the
order of declarations are not compared; the `cordum.v1` package is not in the SDK, so it is not
compared either.
"""

import importlib
import sys

from google.protobuf import descriptor_pb2

PACKAGE = "cordum.agent.v1"
FILES = ["alert", "buspacket", "handshake", "heartbeat", "job", "policy", "safety"]


def from_sdk():
    for name in FILES:
        module = importlib.import_module(f"cap.pb.cordum.agent.v1.{name}_pb2")
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        yield file


def from_us(path):
    descriptors = descriptor_pb2.FileDescriptorSet()
    with open(path, "rb") as source:
        descriptors.ParseFromString(source.read())
    return [file for file in descriptors.file if file.package == PACKAGE]


def facts(files):
    """Every comparable fact as one name and one value."""
    found = {}
    for file in files:
        found[file.name] = (file.package, file.syntax, tuple(sorted(file.dependency)))
        for message in file.message_type:
            message_facts(found, f"{file.package}.{message.name}", file.name, message)
        for enum in file.enum_type:
            enum_facts(found, f"{file.package}.{enum.name}", file.name, enum)
        for service in file.service:
            for method in service.method:
                found[f"{file.package}.{service.name}/{method.name}"] = (
                    method.input_type,
                    method.output_type,
                    method.client_streaming,
                    method.server_streaming,
                )
    return found


def message_facts(found, name, where, message):
    reserved = {number for span in message.reserved_range for number in range(span.start, span.end)}
    found[name] = (
        "message",
        where,
        message.options.map_entry,
        tuple(sorted(reserved)),
        tuple(sorted(message.reserved_name)),
        tuple(oneof.name for oneof in message.oneof_decl),
    )
    for field in message.field:
        oneof = message.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else None
        found[f"{name}.{field.name}"] = (
            field.number,
            descriptor_pb2.FieldDescriptorProto.Type.Name(field.type),
            descriptor_pb2.FieldDescriptorProto.Label.Name(field.label),
            field.type_name,
            field.json_name or default_json_name(field.name),
            oneof,
            field.proto3_optional,
            field.options.deprecated,
            field.options.packed if field.options.HasField("packed") else None,
        )
    for nested in message.nested_type:
        message_facts(found, f"{name}.{nested.name}", where, nested)
    for enum in message.enum_type:
        enum_facts(found, f"{name}.{enum.name}", where, enum)


def default_json_name(name):
    """What a descriptor means when it leaves the JSON name out, as the SDK's do."""
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def enum_facts(found, name, where, enum):
    found[name] = ("enum", where, enum.options.allow_alias)
    for value in enum.value:
        found[f"{name}.{value.name}"] = value.number


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: compare_descriptors.py FILE-DESCRIPTOR-SET")
    ours, theirs = facts(from_us(sys.argv[1])), facts(from_sdk())
    differences = [
        f"{name}: ours {ours.get(name, 'missing')}, the SDK's {theirs.get(name, 'missing')}"
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    ]
    for difference in differences:
        print(difference)
    if differences:
        sys.exit(f"{len(differences)} differences")
    print(f"{len(theirs)} facts agree", file=sys.stderr)


if __name__ == "__main__":
    main()
