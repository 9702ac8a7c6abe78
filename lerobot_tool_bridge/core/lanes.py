"""Calls that share a resource run one after the other; all others run side by side.

``Slots`` is for tools that limit how many of their calls run at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable


class Ticket:
    """One call's place in the lanes of its resources; made by ``Lanes.ticket``."""

    __slots__ = ("begin", "followers", "lanes", "resources", "waits")

    def __init__(self, lanes: Lanes, resources: frozenset[str], begin: Callable[[], None]) -> None:
        self.lanes = lanes
        self.resources = resources
        self.begin: Callable[[], None] | None = begin
        self.followers: list[Ticket] = []
        self.waits = 0

    def enter(self) -> None:
        """Begins now where nothing is before it; else when the last of those is done."""
        if self.waits == 0:
            self._begin()

    def skip(self) -> None:
        """Gives the place up before its turn; those behind still wait for those before."""
        self.begin = None
        if self.waits == 0:
            self.release()

    def release(self) -> None:
        """Lets the next ones in. To be called once, whatever became of the call."""
        done = [self]
        while done:
            ticket = done.pop()
            ticket.lanes.forget(ticket)
            followers, ticket.followers = ticket.followers, []
            for follower in followers:
                follower.waits -= 1
                if follower.waits == 0 and not follower._begin():
                    done.append(follower)

    def _begin(self) -> bool:
        """False where the place was given up."""
        begin, self.begin = self.begin, None
        if begin is not None:
            begin()
        return begin is not None


class Lanes:
    """First come, first served, for each resource."""

    def __init__(self) -> None:
        self._last: dict[str, Ticket] = {}

    def ticket(self, resources: Iterable[str], begin: Callable[[], None]) -> Ticket:
        """Takes a place. ``begin`` is called by ``enter``, or later when its turn comes."""
        ticket = Ticket(self, frozenset(resources), begin)
        for last in {self._last[r] for r in ticket.resources if r in self._last}:
            last.followers.append(ticket)
            ticket.waits += 1
        for resource in ticket.resources:
            self._last[resource] = ticket
        return ticket

    def forget(self, ticket: Ticket) -> None:
        """A ticket is done; nobody has to wait for it any more."""
        for resource in ticket.resources:
            if self._last.get(resource) is ticket:
                del self._last[resource]


class Slots:
    """At most so many at once; the others begin in the order in which they came."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._waiting: deque[Callable[[], bool]] = deque()

    def enter(self, begin: Callable[[], bool]) -> None:
        """Begins now or later; ``begin`` says whether it did, or was given up meanwhile."""
        self._waiting.append(begin)
        self._next()

    def leave(self) -> None:
        """Lets the next one in. To be called once for each that began."""
        self._free += 1
        self._next()

    def _next(self) -> None:
        while self._free and self._waiting:
            if self._waiting.popleft()():
                self._free -= 1
