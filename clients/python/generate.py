"""Writes the parts of the client that nobody should write by hand.

    python clients/python/generate.py            writes them
    python clients/python/generate.py --check    says what is out of date, and ends with 1 if anything is

Two things are made. `models.py` comes from `docs/openapi.json`: what the server answers are dataclasses, what it is
sent are TypedDicts. `_sync/` comes from `_async/`, which is written by hand: the same text without the words of
asyncio, so that the two clients cannot drift apart. The same input gives the same bytes, whatever the machine.
"""

import argparse
import json
import keyword
import pathlib
import re
import sys
import textwrap
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
DOCUMENT = HERE.parent.parent / "docs" / "openapi.json"
PACKAGE = HERE / "src" / "reveille"
WIDTH = 120
Schema = dict[str, Any]
REF = "#/components/schemas/"
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
# What is in these fields is nobody's business but the caller's: they are left out where a value is printed.
SECRET = {"secret"}
# The contracts of others have clients of their own.
OTHERS = {"voicegateway", "molecule", "openorca"}
NOT_BY_HAND = "# Made by generate.py; a change here is lost with the next one."

# What makes the plain client of the one for asyncio. Where more than words differ, `_waiting.py` has a pair of each.
WITHOUT_ASYNCIO = [
    (r"\basync (?=def|with|for)", ""),
    (r"\bawait ", ""),
    (r"\b__a(?=enter__|exit__)", "__"),
    (r"\ba(?=close\(|read\(|iter_bytes\()", ""),
    (r"\b_async\b", "_sync"),
    (r"\bAsync(?=[A-Z])", ""),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    arguments = parser.parse_args()
    files = generated()
    is_there = {path: path.read_text("utf-8") for path in [*(PACKAGE / "_sync").glob("*.py"), *files] if path.exists()}
    stale = sorted(path for path in is_there.keys() | files.keys() if is_there.get(path) != files.get(path))
    for path in stale:
        print(f"{path.relative_to(HERE)} is out of date" if arguments.check else f"{path.relative_to(HERE)}")
    if arguments.check:
        return 1 if stale else 0
    for path in stale:
        if path in files:
            path.write_text(files[path], "utf-8")
        else:
            path.unlink()
    return 0


def generated() -> dict[pathlib.Path, str]:
    """Every file that is made here, and what has to be in it."""
    files = {PACKAGE / "models.py": models(json.loads(DOCUMENT.read_text("utf-8")))}
    for path in sorted((PACKAGE / "_async").glob("*.py")):
        files[PACKAGE / "_sync" / path.name] = without_asyncio(path.read_text("utf-8"))
    return files


def without_asyncio(text: str) -> str:
    for pattern, instead in WITHOUT_ASYNCIO:
        text = re.sub(pattern, instead, text)
    return f"{NOT_BY_HAND}\n{text}"


def models(document: Schema) -> str:
    schemas = document["components"]["schemas"]
    answered = reached(document, schemas, "responses")
    asked = reached(document, schemas, "requestBody") - answered
    chunks = [HEAD]
    for name in in_order(schemas, answered | asked):
        chunks.append(answer_class(name, schemas[name]) if name in answered else question_class(name, schemas[name]))
    return "\n\n".join(chunks)


HEAD = f'''{NOT_BY_HAND}
"""What the server answers, as dataclasses, and what it is sent, as TypedDicts.

The fields and what is said of them are those of `docs/openapi.json`. `Any` is any JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypedDict
'''


def reached(document: Schema, schemas: Schema, part: str) -> set[str]:
    """The schemas that this part of any operation of ours leads to; what it refuses, `errors.py` knows."""
    found: set[str] = set()
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    parts = [operation.get(part, {}) for operation in operations if not OTHERS.intersection(operation["tags"])]
    nodes: list[Any] = [node for part in parts for key, node in part.items() if not key.startswith(("4", "5"))]
    while nodes:
        node = nodes.pop()
        if isinstance(node, list):
            nodes += node
        elif isinstance(node, dict):
            nodes += node.values()
            name = node.get("$ref", "").removeprefix(REF) if isinstance(node.get("$ref"), str) else ""
            if name and name not in found:
                found.add(name)
                nodes.append(schemas[name])
    return found


def in_order(schemas: Schema, names: set[str]) -> list[str]:
    """By name, but what another one extends goes before it."""
    order: list[str] = []

    def place(name: str) -> None:
        for part in schemas[name].get("allOf", []):
            if "$ref" in part:
                place(part["$ref"].removeprefix(REF))
        if name not in order:
            order.append(name)

    for name in sorted(names):
        place(name)
    return order


def answer_class(name: str, schema: Schema) -> str:
    parts = schema.get("allOf", [schema])
    bases = [part["$ref"].removeprefix(REF) for part in parts if "$ref" in part]
    extends = f"({', '.join(bases)})" if bases else ""
    lines = ["@dataclass(frozen=True, slots=True, kw_only=True)", f"class {name}{extends}:"]
    lines += introduced(schema)
    for part in parts:
        required = part.get("required", [])
        for wire, property_ in sorted(part.get("properties", {}).items()):
            lines += attribute(wire, property_, wire in required)
    if any(is_free(part) for part in parts):
        lines += ["    rest: dict[str, Any] = field(default_factory=dict)"]
        lines += said({"description": "Every field that is not named here."})
    return "\n".join(lines) + "\n"


def attribute(wire: str, schema: Schema, is_required: bool) -> list[str]:
    name, kind = python_name(wire), python_type(schema)
    if not is_required and not kind.endswith("| None") and kind != "Any":
        kind += " | None"
    settings = [] if is_required else ["default=None"]
    if wire in SECRET:
        settings.append("repr=False")
    if name != wire:
        settings.append(f'metadata={{"wire": "{wire}"}}')
    value = "" if not settings else " = None" if settings == ["default=None"] else f" = field({', '.join(settings)})"
    return [f"    {name}: {kind}{value}", *said(property_description(schema))]


def question_class(name: str, schema: Schema) -> str:
    """All of a TypedDict's fields are needed or none is; one that has both is made of two."""
    properties = sorted(schema.get("properties", {}).items())
    required = [(wire, kind) for wire, kind in properties if wire in schema.get("required", [])]
    optional = [(wire, kind) for wire, kind in properties if wire not in schema.get("required", [])]
    if required and optional:
        needed = typed_dict(f"_{name}Needed", "TypedDict", {}, required)
        return needed + "\n\n" + typed_dict(name, f"_{name}Needed, total=False", schema, optional)
    bases = "TypedDict" if required else "TypedDict, total=False"
    return typed_dict(name, bases, schema, properties)


def typed_dict(name: str, bases: str, schema: Schema, properties: list[tuple[str, Schema]]) -> str:
    lines = [f"class {name}({bases}):", *introduced(schema)]
    for wire, property_ in properties:
        lines += [f"    {wire}: {python_type(property_)}", *said(property_description(property_))]
    return "\n".join(lines) + "\n"


def said(schema: Schema) -> list[str]:
    text = " ".join(schema.get("description", "").split())
    if not text:
        return []
    lines = textwrap.wrap(f'"""{text}', WIDTH - len('"""'), initial_indent="    ", subsequent_indent="    ")
    return [lines[0] + '"""'] if len(lines) == 1 else [*lines, '    """']


def introduced(schema: Schema) -> list[str]:
    lines = said(schema)
    return [*lines, ""] if lines else []


def property_description(schema: Schema) -> Schema:
    """A reference that may be null carries its description one level down."""
    parts = [schema, *schema.get("oneOf", [])]
    return next((part for part in parts if "description" in part), {})


def python_name(wire: str) -> str:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", wire).lower()
    return name + "_" if keyword.iskeyword(name) else name


def python_type(schema: Schema) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(REF)
    if "oneOf" in schema:
        kinds = [python_type(part) for part in schema["oneOf"]]
        return "Any" if "Any" in kinds else " | ".join(kinds)
    kind = schema.get("type")
    if isinstance(kind, list):
        one = next(word for word in kind if word != "null")
        inner = python_type({**schema, "type": one})
        return inner if inner == "Any" else f"{inner} | None"
    if kind == "array":
        return f"list[{python_type(schema['items'])}]"
    if kind == "object" and "additionalProperties" in schema:
        return f"dict[str, {python_type(schema['additionalProperties'])}]"
    # Nothing more is said of an object, or nothing at all: any JSON.
    return PLAIN.get(kind or "", "Any")


def is_free(schema: Schema) -> bool:
    return schema.get("type") == "object" and "properties" not in schema


if __name__ == "__main__":
    sys.exit(main())
