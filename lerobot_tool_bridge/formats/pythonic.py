"""``pythonic``: a list of Python calls with literal keyword arguments. Nothing is evaluated."""

from __future__ import annotations

import ast
import re
import warnings
from typing import Any

from lerobot_tool_bridge.formats.base import Scan, Tagged, Unfit
from lerobot_tool_bridge.formats.values import add_argument

MAX_CODE = 16 * 1024
"""Characters of one list of calls that are read as Python."""

_LIST = re.compile(r"\s*\[\s*[A-Za-z_][\w.]{0,255}\s*\(")
_CALL_LINE = re.compile(r"\s*[A-Za-z_][\w.]{0,255}\s*\(")
_PIECE = re.compile(r"""[\[({]|[\])}]|"(?:[^"\\\n]|\\.)*("?)|'(?:[^'\\\n]|\\.)*('?)""", re.S)
_MARKS = ("<|tool_call_start|>", "<|python_start|>", "<function_calls>")
_ENDS = {
    "<|tool_call_start|>": "<|tool_call_end|>",
    "<|python_start|>": "<|python_end|>",
    "<function_calls>": "</function_calls>",
}
_NAMES = {"true": True, "false": False, "null": None}


class Pythonic(Tagged):
    """Between markers, or a list that is the whole answer; brackets in prose are prose."""

    name = "pythonic"
    models = "Llama 3.2 1B/3B, Llama 4, LFM2, Olmo 3, Gemma 3 (prompted)"
    example = '[say(text="Hello")]'
    signs = ("<|tool_call_start|>", "<|python_start|>", "<function_calls>")
    verbatim = True
    openers = _MARKS
    drop = ("<|eot|>", "<|eom|>", "<|im_end|>")

    def read_bare(self, scan: Scan) -> bool:
        if _LIST.match(scan.text, scan.pos) is None:
            return False
        _list(scan)
        scan.space()
        scan.take(*self.drop)
        scan.space()
        if not scan.ended:
            scan.calls.clear()
            raise scan.unfit("the end of the answer expected after the list of calls")
        return True

    def read_calls(self, scan: Scan, opener: str, start: int) -> None:
        end = _ENDS[opener]
        if opener == "<function_calls>":
            while True:
                scan.space()
                if scan.take(end):
                    return
                if _CALL_LINE.match(scan.text, scan.pos) is None:
                    raise scan.unfit(f"a call or {end} expected", end)
                code = _code(scan, "(")
                _add(scan, _expression(code, start), start)
        before = len(scan.calls)
        try:
            _list(scan)
            scan.expect(end)
        except Unfit:
            del scan.calls[before:]
            raise


def _list(scan: Scan) -> None:
    scan.space()
    position = scan.pos
    if not scan.text.startswith("[", position):
        raise scan.unfit("a list of calls expected", "[")
    tree = _expression(_code(scan, "["), position)
    if not isinstance(tree, ast.List):
        raise Unfit(position, "a list of calls expected")
    calls = [_call(item, position) for item in tree.elts]
    for name, arguments in calls:
        scan.call(name, arguments, position)


def _add(scan: Scan, tree: ast.expr, position: int) -> None:
    scan.call(*_call(tree, position), position)


def python_call(scan: Scan, position: int) -> None:
    """Reads one call that stands at ``scan.pos``, and adds it.

    Raises:
        Unfit: It is none with literal keyword arguments.
    """
    _add(scan, _expression(_code(scan, "("), position), position)


def _code(scan: Scan, first: str) -> str:
    """The source up to the bracket that closes the first one, which is stepped over."""
    start = scan.pos
    pos = scan.text.find(first, start)
    depth = 0
    while match := _PIECE.search(scan.text, pos):
        piece = match.group()
        pos = match.end()
        if piece[0] in "\"'":
            quote = piece[0]
            if piece == quote * 2 and scan.text.startswith(quote, pos):
                end = scan.text.find(quote * 3, pos + 1)  # triple quotes
                if end < 0:
                    break
                pos = end + 3
            elif not (match.group(1) or match.group(2)):
                raise Unfit(match.start(), "a string is not closed", pos >= len(scan.text))
        elif piece in "[({":
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                scan.pos = pos
                return scan.text[start:pos]
        if pos - start > MAX_CODE:
            raise Unfit(start, f"a list of calls has at most {MAX_CODE} characters")
    raise Unfit(len(scan.text), "the brackets are not closed", cut=True)


def _expression(code: str, position: int) -> ast.expr:
    if len(code) > MAX_CODE:
        raise Unfit(position, f"a list of calls has at most {MAX_CODE} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "\d" and the like in strings of the model
            return ast.parse(code.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise Unfit(position, "this is no Python expression") from None


def _call(tree: ast.expr, position: int) -> tuple[str, dict[str, Any]]:
    if not isinstance(tree, ast.Call):
        raise Unfit(position, "NAME(argument=value, ...) expected")
    if tree.args or any(k.arg is None for k in tree.keywords):
        raise Unfit(position, "only arguments with names are taken, such as x=0.2")
    arguments: dict[str, Any] = {}
    for keyword in tree.keywords:
        value = _literal(keyword.value, position, 0)
        add_argument(arguments, str(keyword.arg), value, position)
    return _name(tree.func, position), arguments


def _name(tree: ast.expr, position: int) -> str:
    parts: list[str] = []
    while isinstance(tree, ast.Attribute) and len(parts) < 8:
        parts.append(tree.attr)
        tree = tree.value
    if not isinstance(tree, ast.Name):
        raise Unfit(position, "the name of a tool expected")
    return ".".join([tree.id, *reversed(parts)])


def _literal(tree: ast.expr, position: int, depth: int) -> Any:
    if depth > 32:
        raise Unfit(position, "it is nested too deeply")
    if isinstance(tree, ast.Constant) and (
        tree.value is None or isinstance(tree.value, str | bool | int | float)
    ):
        return tree.value
    if isinstance(tree, ast.Name) and tree.id in _NAMES:
        return _NAMES[tree.id]
    if isinstance(tree, ast.List | ast.Tuple):
        return [_literal(e, position, depth + 1) for e in tree.elts]
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub | ast.UAdd):
        value = tree.operand.value if isinstance(tree.operand, ast.Constant) else None
        if isinstance(value, int | float) and not isinstance(value, bool):
            return -value if isinstance(tree.op, ast.USub) else value
    if isinstance(tree, ast.Dict):
        return _dict(tree, position, depth)
    raise Unfit(position, "values must be literals: numbers, texts, True, False, None, lists")


def _dict(tree: ast.Dict, position: int, depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for key, item in zip(tree.keys, tree.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            raise Unfit(position, "keys of an object must be texts")
        add_argument(value, key.value, _literal(item, position, depth + 1), position)
    return value
