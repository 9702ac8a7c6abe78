"""How often each tool was called, how that ended, and how long it took."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_RECENT = 1000
"""Calls from which the percentiles are taken: the latest."""


@dataclass(slots=True)
class Statistics:
    """Counts and times of one tool.

    Times are of calls that really ran: not of refused ones, nor of those answered from a cache.
    May be read in any thread.

    Attributes:
        calls: All that were answered.
        cached: Those of ``succeeded`` that were answered without running.
        ran: Calls that ran, whatever became of them.
        total_s: Seconds that those took.
    """

    calls: int = 0
    succeeded: int = 0
    failed: int = 0
    rejected: int = 0
    cancelled: int = 0
    timeout: int = 0
    cached: int = 0
    ran: int = 0
    total_s: float = 0.0
    _recent: list[float] = field(default_factory=list, repr=False)

    def add(self, status: str, seconds: float | None, cached: bool = False) -> None:
        """Counts one call; ``seconds`` is None where it did not run."""
        self.calls += 1
        setattr(self, status, getattr(self, status) + 1)
        self.cached += cached
        if seconds is None or cached:
            return
        if len(self._recent) < _RECENT:
            self._recent.append(seconds)
        else:  # in place, so that another thread can read meanwhile
            self._recent[self.ran % _RECENT] = seconds
        self.ran += 1
        self.total_s += seconds

    @property
    def errors(self) -> int:
        """Calls that were refused, failed or timed out; cancelled ones are no errors."""
        return self.failed + self.rejected + self.timeout

    @property
    def average_s(self) -> float:
        """Seconds per call that ran."""
        return self.total_s / self.ran if self.ran else 0.0

    def percentile(self, share: float) -> float:
        """Seconds within which a share (0 to 1) of the latest calls ended."""
        times = sorted(self._recent)
        if not times:
            return 0.0
        return times[min(len(times) - 1, max(0, -int(-share * len(times) // 1) - 1))]

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "calls": self.calls,
            "succeeded": self.succeeded,
            "errors": self.errors,
            "failed": self.failed,
            "rejected": self.rejected,
            "cancelled": self.cancelled,
            "timeout": self.timeout,
            "cached": self.cached,
            "total_s": self.total_s,
            "average_s": self.average_s,
            "p50_s": self.percentile(0.5),
            "p95_s": self.percentile(0.95),
        }

    def __str__(self) -> str:
        parts = [
            f"{self.calls} call{'' if self.calls == 1 else 's'}",
            f"{self.succeeded} succeeded",
            f"{self.errors} error{'' if self.errors == 1 else 's'}",
        ]
        for name in ("failed", "rejected", "timeout", "cancelled", "cached"):
            if getattr(self, name):
                parts.append(f"{getattr(self, name)} {name}")
        if self.ran:
            parts += [
                f"total {self.total_s:.3f} s",
                f"average {self.average_s:.3f} s",
                f"p50 {self.percentile(0.5):.3f} s",
                f"p95 {self.percentile(0.95):.3f} s",
            ]
        return ", ".join(parts)
