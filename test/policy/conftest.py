"""Fixtures of the language policy's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from stub_server import Stub
from talk import Talk


@pytest.fixture
def stub() -> Iterator[Callable[..., Stub]]:
    """Makes stub servers, and ends them."""
    made: list[Stub] = []

    def make(*answers: Any) -> Stub:
        made.append(Stub(*answers))
        return made[-1]

    yield make
    for server in made:
        server.close()


@pytest.fixture
def talk(stub: Callable[..., Stub]) -> Callable[..., Talk]:
    """Makes a conversation with a stub server that gives some answers."""

    def make(
        *answers: Any,
        reply: Callable[[str, Any], str | None] = lambda name, arguments: f"{name} done",
        server: dict[str, Any] | None = None,
        **settings: Any,
    ) -> Talk:
        return Talk(stub(*answers), reply, server or {}, **settings)

    return make
