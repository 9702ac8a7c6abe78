"""Fixtures of all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Domain, Ros, Spawner


@pytest.fixture
def domain() -> Iterator[Domain]:
    domain = Domain()
    yield domain
    domain.close()


@pytest.fixture
def ros(domain: Domain) -> Iterator[Ros]:
    ros = Ros(domain)
    yield ros
    ros.close()


@pytest.fixture
def spawn(domain: Domain, tmp_path: Path) -> Iterator[Spawner]:
    spawner = Spawner(domain, tmp_path)
    yield spawner
    spawner.close()
