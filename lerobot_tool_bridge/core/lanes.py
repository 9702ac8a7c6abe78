"""Calls that share a resource run one after the other; all others run side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable


class Ticket:
    """One call's place in the lanes of its resources."""

    __slots__ = ("_begin", "_followers", "_left", "_released", "_skipped", "_waits", "resources")

    def __init__(
        self,
        resources: frozenset[str],
        begin: Callable[[], None],
        left: Callable[[Ticket], None],
    ) -> None:
        self.resources = resources
        self._begin = begin
        self._left = left
        self._followers: list[Ticket] = []
        self._waits = 0
        self._skipped = False
        self._released = False

    @property
    def released(self) -> bool:
        return self._released

    def wait_for(self, other: Ticket) -> None:
        other._followers.append(self)
        self._waits += 1

    def skip(self) -> None:
        """Gives the place up before its turn; those behind still wait for those before."""
        self._skipped = True
        if self._waits == 0:
            self.release()

    def release(self) -> None:
        """Lets the next ones in."""
        if self._released:
            return
        self._released = True
        self._left(self)
        followers, self._followers = self._followers, []
        for follower in followers:
            follower._waits -= 1
            follower.go_if_free()

    def go_if_free(self) -> None:
        """Begins where nothing is before it."""
        if self._waits == 0:
            if self._skipped:
                self.release()
            else:
                self._begin()


class Lanes:
    """First come, first served, for each resource."""

    def __init__(self) -> None:
        self._last: dict[str, Ticket] = {}

    def ticket(self, resources: Iterable[str], begin: Callable[[], None]) -> Ticket:
        """Takes a place; ``begin`` is called by ``go_if_free`` now, or when its turn comes.

        The holder calls ``release`` when it is done, whatever happened.
        """
        ticket = Ticket(frozenset(resources), begin, self._forget)
        for last in {self._last[r] for r in ticket.resources if r in self._last}:
            ticket.wait_for(last)
        for resource in ticket.resources:
            self._last[resource] = ticket
        return ticket

    def _forget(self, ticket: Ticket) -> None:
        for resource in ticket.resources:
            if self._last.get(resource) is ticket:
                del self._last[resource]
