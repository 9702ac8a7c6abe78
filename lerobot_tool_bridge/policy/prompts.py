"""What the model is told before the conversation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lerobot_tool_bridge.formats import FORMATS

SYSTEM = (
    "You control a robot by calling tools; only a tool call makes it do something. Use one tool "
    "after the other where a step needs the result of the one before. Positions are in metres. "
    "When a call fails, read the error and correct the call, or say what is wrong. Never say that "
    "something was done unless a result says so. When the instruction is done, answer with one "
    "short sentence in the user's language, without a call."
)

TOOLS = (
    "These are the tools, as JSON:\n{tools}\n\nTo call a tool, write exactly this, with the "
    "tool's name and arguments:\n{example}\nThe results come back in <tool_response>. Write calls "
    "outside of code blocks, and nothing after them."
)


def tools_prompt(template: str, tools: Sequence[Mapping[str, Any]], text_format: str) -> str:
    """The tools for a model whose server does not describe them.

    Args:
        template: ``{tools}`` and ``{example}`` stand for what is put in.
        tools: OpenAI function schemas.
        text_format: In which the model shall write.
    """
    lines = "\n".join(json.dumps(t.get("function", t), ensure_ascii=False) for t in tools)
    return (template or TOOLS).replace("{example}", example(text_format)).replace("{tools}", lines)


def example(text_format: str) -> str:
    """One call in a format; for ``json:…`` with the keys that were chosen."""
    name, _, keys = text_format.partition(":")
    if not keys:
        return FORMATS[name].example
    key, _, arguments = (k.strip() for k in keys.partition(","))
    values = {"text": "Hello"}
    return json.dumps({key: "say", **({arguments: values} if arguments else values)})
