"""The arguments of a tool: a JSON schema, compiled once, and errors that repair the next try."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jsonschema
from jsonschema.validators import extend

from lerobot_tool_bridge.core import patterns, show
from lerobot_tool_bridge.core.errors import LoadError, Rejection

MAX_ERRORS = 8
"""Wrong fields that one answer names."""

_MAX_NODES = 2000
_MAX_LEVELS = 32
_ONE = (
    *("additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"),
    *("unevaluatedItems", "unevaluatedProperties"),
)
_MANY = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("dependentSchemas", "patternProperties", "properties")
_COMBINE = ("allOf", "anyOf", "oneOf", "if", "dependentSchemas")
_NOTES = ("title", "description", "default", "examples", "deprecated", "x-unit")
_OWN = ("x-unit", "x-form")
_VALUES = ("enum", "const", "default", "examples")
_DROPPED = ("$defs", "definitions", "$schema", "$id", "id", "$anchor", "$comment")
_TIGHTER: dict[str, Callable[[Any, Any], Any]] = {
    "minimum": max,
    "exclusiveMinimum": max,
    "minLength": max,
    "minItems": max,
    "minProperties": max,
    "maximum": min,
    "exclusiveMaximum": min,
    "maxLength": min,
    "maxItems": min,
    "maxProperties": min,
}
_WRAPPERS = ("properties", "arguments", "parameters", "args", "input")
_UNIT = re.compile(
    r"\b(degrees|radians|metres|meters|millimetres|millimeters|centimetres|centimeters|seconds|"
    r"percent|newtons|(?:m|rad|deg|mm)/s)\b|%"
)
_KINDS = {
    "number": "a number",
    "integer": "a whole number",
    "string": "a text",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}


class Schema:
    """The parameters of one tool, compiled.

    ``nullable: true`` (OpenAPI's word, which schemas made from Python functions use) allows null.
    Every ``$ref`` is replaced by what it points to, so nothing is ever fetched and no schema can
    run in circles. Unknown arguments are refused unless the schema allows them by name of
    ``additionalProperties``. Patterns match the whole string. A boolean is no number.

    Args:
        parameters: A JSON schema (draft 2020-12) of type object. ``x-unit`` names the unit of a
            number for error messages, where its description does not; ``x-form`` says what a
            pattern wants, for people.

    Attributes:
        parameters: The same as it is in force, references resolved, for ``~/tools``.

    Raises:
        LoadError: ``schema_ref``, ``schema_pattern`` or ``bad_schema``.
    """

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        full = resolve(parameters)
        full.setdefault("type", "object")
        if full["type"] != "object":
            raise LoadError("bad_schema", "its parameters should be of type object")
        full.setdefault("properties", {})
        try:
            jsonschema.Draft202012Validator.check_schema(full)
        except jsonschema.SchemaError as error:
            where = "/".join(str(p) for p in error.absolute_path) or "the top"
            raise LoadError(
                "bad_schema",
                f"its parameters are no JSON schema, at {where}: {error.message[:200]}",
            ) from None
        self._required: list[str] = list(full.get("required", []))
        self._names = list(full["properties"])
        self._whole = [
            name
            for name, part in full["properties"].items()
            if isinstance(part, dict) and _only_whole(part.get("type"))
        ]
        self._validator = _Validator(_with_null(full))
        self.parameters: dict[str, Any] = _without_own_keywords(full)

    def validate(self, arguments: dict[str, Any] | None, padded: bool = False) -> dict[str, Any]:
        """Checks the arguments of one call.

        Args:
            arguments: None where they were left out.
            padded: A null may only fill a column; it counts as left out, where that is allowed.

        Returns:
            The arguments; whole numbers as ``int`` where the schema says integer.

        Raises:
            Rejection: ``invalid_arguments``; names every wrong field.
        """
        given = {} if arguments is None else arguments
        if padded:
            given = {k: v for k, v in given.items() if v is not None or k in self._required}
        errors = [*self._validator.iter_errors(given)]
        if errors:
            raise Rejection("invalid_arguments", self._describe(errors, given))
        whole = {n: int(given[n]) for n in self._whole if type(given.get(n)) is float}
        return {**given, **whole} if whole else given

    def _describe(self, errors: list[Any], given: Mapping[str, Any]) -> str:
        sentences: dict[str, None] = {}
        order = {name: i for i, name in enumerate(self._names)}
        errors.sort(
            key=lambda e: order.get(str(e.absolute_path[0]), 99) if e.absolute_path else -1
        )
        for error in errors:
            for sentence in _sentences(error):
                sentences[sentence] = None
        lines = list(sentences)
        text = ". ".join(lines[:MAX_ERRORS])
        if len(lines) > MAX_ERRORS:
            text += f". And {len(lines) - MAX_ERRORS} more"
        wrapped = [
            k
            for k, v in given.items()
            if k in _WRAPPERS and k not in self._names and isinstance(v, Mapping)
        ]
        if wrapped:
            text += ". Put the arguments at the top level"
        return f"{text}."


def resolve(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a schema without references, closed against unknown arguments.

    Raises:
        LoadError: ``schema_ref``, ``schema_pattern`` or ``bad_schema``.
    """
    return _Resolver(parameters).resolve()


def narrow(schema: Mapping[str, Any], limits: Mapping[str, Any]) -> dict[str, Any]:
    """What satisfies both of two schemas of arguments, as one schema.

    Args:
        schema: Its words (title, description, default) win.
        limits: Its types win; properties that it does not know are dropped if it is closed.
    """
    out = dict(schema)
    if "type" in limits and "nullable" in out:
        del out["nullable"]  # a part of the type, which is that of the limits
    for key, limit in limits.items():
        if key == "nullable" and "type" not in limits:
            continue
        if key not in out or out[key] == limit or key == "type":
            out[key] = limit
        elif key in _NOTES:
            continue
        elif key in _TIGHTER:
            out[key] = _TIGHTER[key](out[key], limit)
        elif key == "enum":
            out[key] = [v for v in out[key] if v in limit]
        elif key == "required":
            out[key] = [*limit, *(n for n in out[key] if n not in limit)]
        elif key == "properties":
            mine = out[key]
            known = {n: narrow(mine[n], p) if n in mine else p for n, p in limit.items()}
            extra = {n: p for n, p in mine.items() if n not in limit}
            out[key] = {**known, **extra}
        elif key == "additionalProperties":
            out[key] = False if limit is False else out[key]
        else:
            out["allOf"] = [*out.get("allOf", []), {key: limit}]
    if limits.get("additionalProperties") is False and "properties" in limits:
        names = limits["properties"]
        out["properties"] = {n: p for n, p in out["properties"].items() if n in names}
        out["required"] = [n for n in out.get("required", []) if n in names]
    return out


class _Resolver:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._nodes = 0

    def resolve(self) -> dict[str, Any]:
        if not isinstance(self._root, Mapping):
            raise LoadError("bad_schema", "its parameters should be a JSON schema object")
        out = self._schema(self._root, ())
        assert isinstance(out, dict)
        _close(out)
        return out

    def _schema(self, node: Any, refs: tuple[str, ...], level: int = 0) -> Any:
        if isinstance(node, bool):
            return node
        if not isinstance(node, Mapping):
            raise LoadError("bad_schema", "a schema in its parameters is no object")
        self._nodes += 1
        if self._nodes > _MAX_NODES or level > _MAX_LEVELS:
            raise LoadError("bad_schema", "its parameters are too large or too deeply nested")
        out: dict[str, Any] = {}
        for key, value in node.items():
            if key in ("$ref", "$dynamicRef", "$recursiveRef") or key in _DROPPED:
                continue
            if key in _ONE:
                out[key] = self._schema(value, refs, level + 1)
            elif key in _MANY and isinstance(value, list):
                out[key] = [self._schema(v, refs, level + 1) for v in value]
            elif key in _NAMED and isinstance(value, Mapping):
                out[key] = {str(n): self._schema(v, refs, level + 1) for n, v in value.items()}
            else:
                out[key] = value
        for pattern in (node.get("pattern"), *(node.get("patternProperties") or ())):
            if isinstance(pattern, str) and (what := patterns.problem(pattern)):
                raise LoadError("schema_pattern", f"the pattern {show.text(pattern)}: {what}")
        for key in ("$ref", "$dynamicRef", "$recursiveRef"):
            if key in node:
                out = self._merged(out, self._target(node[key], refs, level))
        return out

    def _target(self, ref: Any, refs: tuple[str, ...], level: int) -> Any:
        if not isinstance(ref, str) or not (ref == "#" or ref.startswith("#/")):
            raise LoadError(
                "schema_ref",
                f"it refers to {show.value(ref)}; only references inside of the schema itself "
                "(#/$defs/...) are followed, nothing is ever fetched",
            )
        if ref in refs:
            raise LoadError("schema_ref", f"the reference {show.text(ref)} leads to itself")
        node: Any = self._root
        for step in ref.split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(node, Mapping) and step in node:
                node = node[step]
            elif isinstance(node, list) and step.isdecimal() and int(step) < len(node):
                node = node[int(step)]
            else:
                raise LoadError("schema_ref", f"the reference {show.text(ref)} leads nowhere")
        return self._schema(node, (*refs, ref), level + 1)

    @staticmethod
    def _merged(beside: dict[str, Any], target: Any) -> dict[str, Any]:
        if isinstance(target, dict) and all(k in _NOTES for k in beside):
            return {**target, **beside}
        return {**beside, "allOf": [*beside.get("allOf", []), target]}


def _close(schema: dict[str, Any]) -> None:
    """Refuses unknown members of the arguments, and of objects in them that name their members."""
    key = "unevaluatedProperties" if any(c in schema for c in _COMBINE) else "additionalProperties"
    if "additionalProperties" not in schema and "unevaluatedProperties" not in schema:
        schema[key] = False
    for part in schema.get("properties", {}).values():
        if isinstance(part, dict) and isinstance(part.get("properties"), dict):
            _close(part)


def _only_whole(kinds: Any) -> bool:
    return kinds == "integer" or (
        isinstance(kinds, list) and "integer" in kinds and "number" not in kinds
    )


def _with_null(node: Any) -> Any:
    """A schema in which ``nullable`` is said in JSON schema's own words."""
    if isinstance(node, list):
        return [_with_null(v) for v in node]
    if not isinstance(node, dict):
        return node
    out: dict[str, Any] = {}
    for key, value in node.items():
        if key in _NAMED and isinstance(value, dict):
            out[key] = {n: _with_null(v) for n, v in value.items()}
        else:
            out[key] = value if key in _VALUES else _with_null(value)
    if node.get("nullable") is not True:
        return out
    if "type" in out:
        kinds = out["type"] if isinstance(out["type"], list) else [out["type"]]
        out["type"] = [*kinds, *(["null"] if "null" not in kinds else [])]
    if "enum" in out:
        out["enum"] = [*out["enum"], *([None] if None not in out["enum"] else [])]
    for key in ("anyOf", "oneOf"):
        if key in out:
            out[key] = [*out[key], {"type": "null"}]
    if any(k in out for k in ("allOf", "not", "if", "const")):
        out = {"anyOf": [{"type": "null"}, out]}
    return out


def _without_own_keywords(node: Any) -> Any:
    if isinstance(node, dict):
        return {k: _without_own_keywords(v) for k, v in node.items() if k not in _OWN}
    if isinstance(node, list):
        return [_without_own_keywords(v) for v in node]
    return node


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, str) and (
        len(instance) > patterns.MAX_LENGTH or re.fullmatch(pattern, instance) is None
    ):
        yield jsonschema.ValidationError("pattern")


_Validator: Any = extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator, {"pattern": _pattern}
)


def _sentences(error: Any) -> list[str]:
    """One short sentence for each field that an error of jsonschema is about."""
    rule, limit, got, schema = error.validator, error.validator_value, error.instance, error.schema
    if rule == "required":
        inside = _field(error.absolute_path, {})
        missing = [n for n in limit if n not in got]
        names = show.listed(f"{inside}.{n}" if inside else n for n in missing)
        return [f"{names} {'is' if len(missing) == 1 else 'are'} missing"]
    if rule in ("additionalProperties", "unevaluatedProperties"):
        inside = _field(error.absolute_path, {})
        known = list(schema.get("properties", {}))
        takes = f"it takes {show.listed(known)}" if known else "it takes none"
        extra = [show.plain(n) for n in got if n not in known]
        names = show.listed(extra, limit=4)
        of = f"{inside} has" if inside else "this tool has"
        return [f"{names}: {of} no such argument, {takes}"]
    field = _field(error.absolute_path, schema) or "the arguments"
    return [_sentence(field, rule, limit, got, schema)]


def _sentence(field: str, rule: str, limit: Any, got: Any, schema: Mapping[str, Any]) -> str:
    if rule == "type":
        kinds = [limit] if isinstance(limit, str) else limit
        wanted = show.listed((_KINDS.get(k, k) for k in kinds), "or")
        what = f"the string {show.value(got)}" if isinstance(got, str) else show.value(got)
        hint = "; leave it out instead" if got is None else ""
        return f"{field} must be {wanted}, got {what}{hint}"
    if rule in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
        return f"{field}: {show.value(got)} given, {_range(schema)} allowed"
    if rule in ("enum", "const"):
        choices = [limit] if rule == "const" else limit
        allowed = show.listed((show.value(v) for v in choices), "or")
        return f"{field}: {show.value(got)} given, {allowed} expected"
    if rule == "minLength" and not got:
        return f"{field} must not be empty"
    if rule in ("minLength", "maxLength"):
        return f"{field}: {len(got)} characters given, {_count(schema, 'Length')} allowed"
    if rule in ("minItems", "maxItems"):
        return f"{field}: {len(got)} values given, {_count(schema, 'Items')} expected"
    if rule == "pattern":
        form = (
            schema.get("x-form")
            or schema.get("description")
            or f"the pattern {show.plain(limit, 80)}"
        )
        form = show.plain(form.rstrip("."), 200)
        return f"{field}: {show.value(got)} given, which does not fit: {form}"
    if rule == "multipleOf":
        return f"{field}: {show.value(got)} given, a multiple of {show.value(limit)} expected"
    return f"{field}: {show.value(got)} given, which does not fit its schema ({rule})"


def _field(path: Any, schema: Any) -> str:
    """``pan``, ``box.size``, ``elbow_flex (third of angles)``."""
    name = ""
    for step in path:
        if isinstance(step, int):
            name += f"[{step}]"
        else:
            name += f"{'.' if name else ''}{show.plain(step)}"
    steps = list(path)
    title = schema.get("title") if isinstance(schema, Mapping) else None
    if len(steps) > 1 and isinstance(steps[-1], int) and isinstance(title, str):
        return f"{title} ({_ordinal(steps[-1])} of {name[: name.rindex('[')]})"
    return name


def _ordinal(index: int) -> str:
    words = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
    return words[index] if index < len(words) else f"number {index + 1}"


def _range(schema: Mapping[str, Any]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    over, under = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    unit = _unit(schema)
    if low is not None and high is not None:
        return f"{show.value(low)} to {show.value(high)}{unit}"
    parts = []
    if over is not None:
        parts.append(f"more than {show.value(over)}")
    elif low is not None:
        parts.append(f"at least {show.value(low)}")
    if under is not None:
        parts.append(f"less than {show.value(under)}")
    elif high is not None:
        parts.append(f"at most {show.value(high)}")
    return f"{' and '.join(parts)}{unit}"


def _count(schema: Mapping[str, Any], what: str) -> str:
    low, high = schema.get(f"min{what}"), schema.get(f"max{what}")
    if low is not None and low == high:
        return f"{low}"
    if low and high is not None:
        return f"{low} to {high}"
    return f"at most {high}" if high is not None else f"at least {low}"


def _unit(schema: Mapping[str, Any]) -> str:
    unit = schema.get("x-unit")
    if not isinstance(unit, str):
        found = {m.group() for m in _UNIT.finditer(str(schema.get("description", "")))}
        unit = found.pop() if len(found) == 1 else ""
    return f" {unit}" if unit else ""
