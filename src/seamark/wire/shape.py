"""JSON Schemas for the OpenAPI document: of an example as it stands, and of a type that bodies are read as."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import NODEFAULT, inspect

Schema = dict[str, Any]
_PLAIN: dict[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string"}
_SCALARS: dict[type[inspect.Type], str] = {
    inspect.BoolType: "boolean", inspect.IntType: "integer", inspect.FloatType: "number", inspect.StrType: "string",
    inspect.NoneType: "null",
}  # fmt: skip


def of_example(example: object, named: Mapping[str, Schema] | None = None) -> Schema:
    """What has this form. `named` are members whose example does not say all: a null, a map, any JSON."""
    if isinstance(example, Mapping):
        given = named or {}
        members = {name: given[name] if name in given else of_example(example[name], named) for name in example}
        return {"type": "object", "properties": members}
    if isinstance(example, list | tuple):
        return {"type": "array", "items": of_example(example[0], named) if example else {}}
    kind = next((word for kind, word in _PLAIN.items() if isinstance(example, kind)), None)
    return {"type": kind} if kind else {}


def of_type(kind: Any) -> Schema:
    """What can be read as this type. A struct's members that may be left out say what they are then."""
    return _of(inspect.type_info(kind))


def _of(info: inspect.Type) -> Schema:
    if isinstance(info, inspect.Metadata):
        return _of(info.type)
    if isinstance(info, inspect.StructType):
        members = {field.encode_name: _with_default(field) for field in info.fields}
        required = [field.encode_name for field in info.fields if field.required]
        return {"type": "object", "properties": members, **({"required": required} if required else {})}
    if isinstance(info, inspect.DictType):
        return {"type": "object", "additionalProperties": _of(info.value_type)}
    if isinstance(info, inspect.ListType | inspect.VarTupleType):
        return {"type": "array", "items": _of(info.item_type)}
    if isinstance(info, inspect.EnumType):
        return {"enum": [member.value for member in info.cls]}
    if isinstance(info, inspect.UnionType):
        return {"anyOf": [_of(one) for one in info.types]}
    if type(info) not in _SCALARS:
        return {}  # any JSON
    return {"type": _SCALARS[type(info)], **_bounds(info)}


def _bounds(info: inspect.Type) -> Schema:
    if not isinstance(info, inspect.IntType):
        return {}
    bounds = {"minimum": info.ge, "maximum": info.le}
    return {name: value for name, value in bounds.items() if value is not None}


def _with_default(field: inspect.Field) -> Schema:
    schema, default = _of(field.type), field.default
    said = default is None or isinstance(default, bool | int | float | str)
    return schema | {"default": default} if said and default is not NODEFAULT else schema
