"""From JSON to the models, by their annotations.

Fields that are not known are passed over: a newer server says more. A field that is missing or of another kind is an
`UnexpectedAnswer` that names it, so that nobody finds out three calls later.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from typing import Any, TypeVar

from .errors import UnexpectedAnswer

T = TypeVar("T")


def decode(kind: type[T], json: object) -> T:
    """`kind` is a model, a list or dict of models, or `object` for whatever is there."""
    return typing.cast(T, _decode(kind, json, "answer"))


def _decode(kind: Any, json: Any, where: str) -> Any:
    if kind is Any or kind is object:
        return json
    if dataclasses.is_dataclass(kind):
        return _model(kind, json, where)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Union or origin is types.UnionType:
        # The only unions there are: something, or nothing.
        inner = next(argument for argument in arguments if argument is not types.NoneType)
        return None if json is None else _decode(inner, json, where)
    if origin is list:
        items = _of(list, json, where)
        return [_decode(arguments[0], item, f"{where}[{index}]") for index, item in enumerate(items)]
    if origin is dict:
        return {key: _decode(arguments[1], item, f"{where}.{key}") for key, item in _of(dict, json, where).items()}
    if kind is float and isinstance(json, int) and not isinstance(json, bool):
        return float(json)
    return _of(kind, json, where)


def _model(kind: Any, json: Any, where: str) -> Any:
    said = _of(dict, json, where)
    values: dict[str, Any] = {}
    known = set()
    for name, wire, hint, is_required in _fields(kind):
        if name == "rest":
            continue
        known.add(wire)
        if wire in said:
            values[name] = _decode(hint, said[wire], f"{where}.{wire}")
        elif is_required:
            raise _unexpected(f"{where} has no {wire}")
    if any(name == "rest" for name, *_ in _fields(kind)):
        values["rest"] = {key: item for key, item in said.items() if key not in known}
    return kind(**values)


@functools.cache
def _fields(kind: Any) -> tuple[tuple[str, str, Any, bool], ...]:
    hints = typing.get_type_hints(kind)
    return tuple(
        (
            field.name,
            field.metadata.get("wire", field.name),
            hints[field.name],
            field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING,
        )
        for field in dataclasses.fields(kind)
    )


def _of(kind: type[Any], json: Any, where: str) -> Any:
    # To Python a bool is an int; to JSON it is not.
    if not isinstance(json, kind) or (kind is int and isinstance(json, bool)):
        raise _unexpected(f"{where} is {type(json).__name__}, not {kind.__name__}")
    return json


def _unexpected(words: str) -> UnexpectedAnswer:
    return UnexpectedAnswer(words, code="unexpected_answer")
