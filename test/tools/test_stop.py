"""``stop``: nothing in its arguments keeps the robot from stopping."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lerobot_tool_bridge.core.schema import Schema
from lerobot_tool_bridge.core.tool import CallContext
from lerobot_tool_bridge.ports import Ports
from lerobot_tool_bridge.tools.stop import Stop


@pytest.mark.parametrize("arguments", [{}, {"now": True}, {"reason": "hand", "arm": None}])
def test_any_arguments_will_do(arguments: dict[str, Any]) -> None:
    tool = Stop(Ports())
    Schema(tool.parameters).validate(arguments)
    tool.check(arguments)
    assert asyncio.run(tool.run(arguments, CallContext("a")))


def test_it_waits_for_no_resource_and_no_stop_refuses_it() -> None:
    tool = Stop(Ports())
    assert tool.resources == frozenset()
    assert not tool.motion
    assert tool.needs == ()
    assert "required" not in tool.parameters
