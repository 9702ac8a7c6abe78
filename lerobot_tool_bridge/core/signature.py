"""A Python function's schema, from its signature and docstring.

``get_json_schema`` gives for a function what ``transformers.utils.get_json_schema`` (5.24) gives
for it, and refuses what that one refuses. ``function_parameters`` is for functions that were not
written for it: an argument may lack its description or its type. ``Values`` brings arguments that
fit the schema into the types that the function is written for.
"""

from __future__ import annotations

import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, Union

from lerobot_tool_bridge.core.errors import LoadError

_NAMES: dict[Any, str] = {
    int: "integer",
    float: "number",
    str: "string",
    bool: "boolean",
    type(None): "null",
    list: "array",
    tuple: "array",
    dict: "object",
}
_SCALARS = (int, float, str, bool, type(None))
_SECTIONS = ("Args:", "Returns:", "Raises:")
_HEADER = re.compile(r"([ \t]*)(\w+)(?:[ \t]*\([^()\n]*\))?:")
_CHOICES = re.compile(r"\(choices:\s*", re.IGNORECASE)
_MISSING = inspect.Parameter.empty
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class TypeHintParsingException(LoadError):
    """A type hint has no JSON schema; the text says what to write in its place."""

    def __init__(self, message: str) -> None:
        super().__init__("bad_schema", message)


class DocstringParsingException(LoadError):
    """The docstring lacks what the schema needs."""

    def __init__(self, message: str) -> None:
        super().__init__("bad_schema", message)


@dataclass(frozen=True, slots=True)
class Docstring:
    """A docstring in Google's style.

    Attributes:
        description: What stands before the first section.
        arguments: Their descriptions by name, each on one line.
        returns: What the section ``Returns:`` says; None where there is none.
    """

    description: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)
    returns: str | None = None

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Docstring:
        """The docstring of a function; empty where it has none."""
        text = (inspect.getdoc(function) or "").strip()
        ends = [i for s in _SECTIONS if (i := text.find(s)) >= 0]
        arguments = _section(text, "Args:", ("Returns:", "Raises:"))
        return cls(
            text[: min(ends, default=len(text))].strip(),
            _entries(arguments) if arguments is not None else {},
            _section(text, "Returns:", ("Raises:",)),
        )


def get_json_schema(function: Callable[..., Any]) -> dict[str, Any]:
    """The OpenAI schema of a function with type hints and a Google docstring.

    Each argument needs a type and a line under ``Args:``; ``(choices: ["a", "b"])`` at the end of
    the line becomes an ``enum``. A receiver (``self``, ``cls``) is left out.

    Raises:
        TypeHintParsingException: An argument has no type, or one that no schema can say.
        DocstringParsingException: The docstring, or an argument's description, is missing.
    """
    name = _name(function)
    doc = Docstring.of(function)
    if not inspect.getdoc(function):
        raise DocstringParsingException(
            f"{name} has no docstring. Say in it what the function does, and what its arguments "
            "are under 'Args:'."
        )
    parameters = _parameters(function, doc, strict=True)
    result: dict[str, Any] = {
        "name": name,
        "description": doc.description,
        "parameters": parameters,
    }
    hint = _hints(function).get("return", _MISSING)
    if hint is not _MISSING:
        try:
            returned = type_schema(hint)
        except TypeHintParsingException:
            pass  # the model never writes it, so it is left out
        else:
            if doc.returns is not None:
                returned["description"] = doc.returns
            result["return"] = returned
    return {"type": "function", "function": result}


def function_parameters(function: Callable[..., Any]) -> dict[str, Any]:
    """The schema of a function's arguments, where descriptions and types may be missing.

    An argument without a type takes any value. ``*args`` and ``**kwargs`` can't be called by name
    and are refused.

    Raises:
        TypeHintParsingException: A type is there that no schema can say.
    """
    return _parameters(function, Docstring.of(function), strict=False)


def type_schema(hint: Any) -> dict[str, Any]:
    """The JSON schema of one type hint.

    Raises:
        TypeHintParsingException: It has none.
    """
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is None:
        return _plain(hint)
    if origin is Union or origin is types.UnionType:
        return _union(inner)
    if origin is Literal:
        return _choice(list(inner), "Literal")
    if origin is list:
        return {"type": "array", "items": type_schema(inner[0])} if inner else {"type": "array"}
    if origin is tuple:
        return _tuple(hint, inner)
    if origin is dict:
        values = {"additionalProperties": type_schema(inner[1])} if len(inner) == 2 else {}
        return {"type": "object", **values}
    raise _unknown(hint)


class Values:
    """What makes JSON values into the values that a function's hints promise.

    JSON has no enumerations and no tuples: ``Enum`` members are made from their values, tuples
    from lists. Everything else is handed on as it is.

    Args:
        function: Its hints count; without any that need it, nothing is done.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        hints = _hints(inner_function(function))
        self._hints = {n: h for n, h in hints.items() if n != "return" and _needs_work(h)}

    def __call__(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        made = dict(arguments)
        for name, hint in self._hints.items():
            if name in made:
                made[name] = _make(hint, made[name])
        return made


def inner_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function whose signature counts, below decorators.

    A decorator that does not use ``functools.wraps`` hides it behind ``*args, **kwargs``; it is
    then the one function in the wrapper's closure.
    """
    for _ in range(10):
        function = inspect.unwrap(function)
        if not isinstance(function, types.FunctionType):
            break
        parameters = inspect.signature(function).parameters.values()
        if not parameters or any(p.kind not in _VARIADIC for p in parameters):
            break
        try:
            held = [c.cell_contents for c in function.__closure__ or ()]
        except ValueError:  # not filled yet
            break
        inside = [f for f in held if inspect.isfunction(inspect.unwrap(f))]
        if len(inside) != 1:
            break
        function = inside[0]
    return function


# --- the docstring ----------------------------------------------------------------------------


def _section(text: str, title: str, ends: tuple[str, ...]) -> str | None:
    """What stands below a title that has a line of its own, up to the next title."""
    found = re.search(rf"\n[^\S\n]*{title}\n", text)
    if found is None:
        return None
    body = text[found.end() :]
    return body[: min((i for e in ends if (i := body.find(e)) >= 0), default=len(body))].strip(
        None if title == "Returns:" else "\n"
    )


def _entries(body: str) -> dict[str, str]:
    """``name (type): description`` entries; lines that are indented deeper go on with one."""
    entries: dict[str, str] = {}
    name = indent = ""
    words: list[str] = []
    for line in body.split("\n"):
        if not line.strip():
            continue
        head = _HEADER.match(line)
        deeper = len(line) > len(indent) and line.startswith(indent) and line[len(indent)] in " \t"
        # an entry without a word of its own takes whatever comes next
        if head is not None and not (name and (deeper or not any(words))):
            if name:
                entries[name] = _joined(words)
            indent, name = head.group(1), head.group(2)
            words = [line[head.end() :].strip()]
        elif name:
            words.append(line.strip())
    if name:
        entries[name] = _joined(words)
    return entries


def _joined(words: list[str]) -> str:
    return " ".join(w for w in words if w)


# --- the signature ----------------------------------------------------------------------------


def _parameters(function: Callable[..., Any], doc: Docstring, *, strict: bool) -> dict[str, Any]:
    name = _name(function)
    target = function if strict else inner_function(function)
    hints = _hints(target)
    signature = _signature(target)
    receiver = next(
        (
            p.name
            for p in list(signature.parameters.values())[:1]
            if p.name in ("self", "cls") and p.annotation is _MISSING
        ),
        None,
    )
    given = {n: p for n, p in signature.parameters.items() if n != receiver}
    properties: dict[str, Any] = {}
    for argument, parameter in given.items():
        if not strict and parameter.kind in (*_VARIADIC, inspect.Parameter.POSITIONAL_ONLY):
            raise TypeHintParsingException(
                f"{name} takes {parameter}, which can't be given by name. Write the arguments "
                "out, or use functools.wraps in the decorator that hides them."
            )
        if parameter.annotation is _MISSING and strict:
            raise TypeHintParsingException(
                f"The argument {argument} of {name} has no type hint. Write one, such as "
                f"{argument}: float."
            )
    # in the order of the hints, which is that of the signature, as far as there are any
    for argument in hints if strict else given:
        if argument in ("return", receiver):
            continue
        try:
            schema = type_schema(hints[argument]) if argument in hints else {}
        except TypeHintParsingException as error:
            raise TypeHintParsingException(
                f"The argument {argument} of {name}: {error.message}"
            ) from None
        properties[argument] = _described(schema, name, argument, doc, strict)
    required = [n for n, p in given.items() if p.default is _MISSING]
    result: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        result["required"] = required
    return result


def _described(
    schema: dict[str, Any], name: str, argument: str, doc: Docstring, strict: bool
) -> dict[str, Any]:
    text = doc.arguments.get(argument)
    if text is None:
        if strict:
            raise DocstringParsingException(
                f"The docstring of {name} does not describe its argument {argument}. Add a line "
                f"under 'Args:': {argument}: what it is, and its unit."
            )
        return schema
    found = _CHOICES.search(text)
    if found is not None and text.endswith(")"):
        schema["enum"] = _choices(text[found.end() : -1], name, argument)
        text = text[: found.start()].strip()
    schema["description"] = text
    return schema


def _choices(text: str, name: str, argument: str) -> list[Any]:
    try:
        values = json.loads(text)
    except ValueError:
        values = None
    if not isinstance(values, list):
        raise DocstringParsingException(
            f"The choices of {argument} in the docstring of {name} are no JSON list. Write them "
            'with double quotes: (choices: ["a", "b"]).'
        )
    return [v.strip() if isinstance(v, str) else v for v in values]


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except NameError as error:
        raise TypeHintParsingException(
            f"A type hint of {_name(function)} can't be resolved: {error}. Import it in the "
            "module of the function."
        ) from None
    except TypeError:
        raise TypeHintParsingException(
            f"{_name(function)} is no function or method, so its type hints can't be read. Wrap "
            "it into a function."
        ) from None


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except ValueError:
        raise TypeHintParsingException(
            f"{_name(function)} has no signature that Python can read. Wrap it into a function."
        ) from None


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", "operation"))


# --- types ------------------------------------------------------------------------------------


def _plain(hint: Any) -> dict[str, Any]:
    if _is_enum(hint):
        return _choice([m.value for m in hint], f"The Enum {hint.__name__}")
    if hint is Any:
        return {}
    # the typing module's own List, Dict and Tuple have an origin without arguments
    name = _NAMES.get(hint) if isinstance(hint, type) else None
    if name is None:
        raise _unknown(hint)
    return {"type": name}


def _choice(values: list[Any], what: str) -> dict[str, Any]:
    if not values:
        raise TypeHintParsingException(f"{what} has no members, so no value could fit.")
    wrong = [v for v in values if type(v) not in _SCALARS]
    if wrong:
        raise TypeHintParsingException(
            f"{what} has the value {wrong[0]!r}, which JSON can't say. Use str, int, float, bool "
            "or None."
        )
    kinds = list(dict.fromkeys(_NAMES[type(v)] for v in values))
    return {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": values}


def _union(members: tuple[Any, ...]) -> dict[str, Any]:
    parts = [type_schema(m) for m in members if m is not type(None)]
    if len(parts) == 1:
        result = parts[0]
    elif all(list(p) == ["type"] and isinstance(p["type"], str) for p in parts):
        kinds = sorted({p["type"] for p in parts})
        result = {"type": kinds[0] if len(kinds) == 1 else kinds}
    else:
        result = {"anyOf": parts}
    if type(None) in members:
        result["nullable"] = True
    return result


def _tuple(hint: Any, members: tuple[Any, ...]) -> dict[str, Any]:
    if not members:
        return {"type": "array"}
    if len(members) == 1 or ... in members:
        raise TypeHintParsingException(
            f"{_written(hint)} is refused: write list[...] for any number of values of one kind, "
            "or the type alone for one value."
        )
    return {"type": "array", "prefixItems": [type_schema(m) for m in members]}


def _unknown(hint: Any) -> TypeHintParsingException:
    return TypeHintParsingException(
        f"{_written(hint)} has no JSON schema. Use int, float, str, bool, an Enum, Literal, list, "
        "tuple, dict, or a union of those; or write the schema by hand."
    )


def _written(hint: Any) -> str:
    return hint.__qualname__ if _is_class(hint) else str(hint).replace("typing.", "")


def _is_class(hint: Any) -> bool:
    # list[int] is an instance of type in Python 3.10
    return isinstance(hint, type) and typing.get_origin(hint) is None


def _is_enum(hint: Any) -> bool:
    return _is_class(hint) and issubclass(hint, Enum)


# --- values -----------------------------------------------------------------------------------


def _needs_work(hint: Any) -> bool:
    if _is_enum(hint):
        return True
    return typing.get_origin(hint) is tuple or any(_needs_work(h) for h in typing.get_args(hint))


def _make(hint: Any, value: Any) -> Any:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if _is_enum(hint):
        return hint(value)
    if origin is tuple and isinstance(value, list):
        kinds = inner or (Any,) * len(value)
        return tuple(_make(h, v) for h, v in zip(kinds, value, strict=False))
    if origin is list and inner and isinstance(value, list):
        return [_make(inner[0], v) for v in value]
    if origin is dict and len(inner) == 2 and isinstance(value, dict):
        return {k: _make(inner[1], v) for k, v in value.items()}
    if origin is Union or origin is types.UnionType:
        for member in inner:
            made = _attempt(member, value)
            if made is not value:
                return made
    return value


def _attempt(hint: Any, value: Any) -> Any:
    try:
        return _make(hint, value)
    except ValueError:
        return value
