"""Runs the benchmarks, prints each number beside its limit, writes ``bench/results.json``."""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import sys
import time
from pathlib import Path
from typing import Any

PARTS = (
    "calls",
    "actions",
    "burst",
    "idle",
    "pictures",
    "start",
    "grasping",
    "seeing",
    "formats",
    "policy",
)
RESULTS = Path(__file__).parent / "results.json"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", default=PARTS, metavar="PART", help=", ".join(PARTS))
    parts = parser.parse_args().parts
    unknown = sorted(set(parts) - set(PARTS))
    if unknown:
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    missed = []
    for part in parts:
        print(f"{part}:", flush=True)
        start = time.monotonic()
        numbers = importlib.import_module(f"bench.{part}").measure()
        results[part] = {
            "numbers": numbers,
            "took_s": round(time.monotonic() - start, 1),
            "python": platform.python_version(),
            "date": time.strftime("%Y-%m-%d"),
        }
        for name, number in numbers.items():
            ok = _within(number)
            if ok is False:
                missed.append(f"{part}: {name}")
            mark = {True: "ok", False: "MISSED", None: ""}[ok]
            limit = " ".join(f"{k} {v}" for k, v in number.items() if k in ("at_most", "at_least"))
            rest = {k: v for k, v in number.items() if k not in ("value", "at_most", "at_least")}
            print(f"  {name}: {number['value']} {limit} {mark}  {rest or ''}".rstrip(), flush=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(f"{len(missed)} limits missed{': ' + '; '.join(missed) if missed else ''}")
    return 1 if missed else 0


def _within(number: dict[str, Any]) -> bool | None:
    if "at_most" in number:
        return bool(number["value"] <= number["at_most"])
    if "at_least" in number:
        return bool(number["value"] >= number["at_least"])
    return None


if __name__ == "__main__":
    sys.exit(main())
