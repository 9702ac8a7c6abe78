"""Reads the case files and builds what they need."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "cases"


def load(name: str) -> list[dict[str, Any]]:
    """The cases of one file, generators expanded."""
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    return [_expand(json.loads(line)) for line in lines]


def field_case(case_id: str) -> dict[str, Any]:
    return next(c for c in load("field_cases.jsonl") if c["id"] == case_id)


def _expand(value: Any) -> Any:
    if isinstance(value, list):
        return [_expand(v) for v in value]
    if not isinstance(value, dict):
        return value
    if "$repeat" in value:
        prefix, unit, count, suffix = value["$repeat"]
        return f"{prefix}{unit * count}{suffix}"
    if "$py" in value:
        return {"float('nan')": float("nan"), "'\\ud800'": "\ud800"}[value["$py"]]
    if "$calls" in value:
        count, name, arguments = value["$calls"]
        return [
            {
                "id": f"c{i:08d}",
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
            for i in range(count)
        ]
    return {k: _expand(v) for k, v in value.items()}
