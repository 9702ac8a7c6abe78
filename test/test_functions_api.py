"""Code written for a registry of functions."""

from __future__ import annotations

import asyncio
import functools
from enum import Enum
from typing import Any, List, Optional  # noqa: UP035

import pytest
import yaml

from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.core.registry import Registry
from lerobot_tool_bridge.core.toolsfile import load_tools_file
from lerobot_tool_bridge.functions import (
    FunctionRegistry,
    execute_tool_call,
    generate_function_schema,
    get_enabled_schemas,
    integrate_tool_result,
    register_function,
)
from lerobot_tool_bridge.local import Local
from lerobot_tool_bridge.ports import Ports


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has an empty registry."""
    for name, value in (("_functions", {}), ("_settings", {}), ("_new", []), ("problems", [])):
        monkeypatch.setattr(FunctionRegistry, name, value)
    monkeypatch.setattr(FunctionRegistry, "_local", Local())


def ask(name: str, arguments: Any, call_id: str = "call_1") -> dict[str, Any]:
    body = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": body}


def test_the_decorator_leaves_the_function_as_it_is():
    @FunctionRegistry.register_function("my_tool", "我的自定义工具")
    def my_tool_func(param1: str, param2: int = 10) -> str:
        """
        执行自定义操作

        Args:
            param1: 字符串参数，必需
            param2: 整数参数，可选，默认值为10

        Returns:
            操作结果的描述
        """
        return f"操作完成: {param1} {param2}"

    assert my_tool_func("a") == "操作完成: a 10"
    assert FunctionRegistry.get_function("my_tool") is my_tool_func
    assert not FunctionRegistry.is_async("my_tool")
    assert generate_function_schema("my_tool", my_tool_func) == {
        "name": "my_tool",
        "description": "我的自定义工具",
        "parameters": {
            "type": "object",
            "properties": {
                "param1": {"type": "string", "description": "字符串参数，必需"},
                "param2": {"type": "integer", "description": "整数参数，可选，默认值为10"},
            },
            "required": ["param1"],
        },
    }
    assert FunctionRegistry.call(ask("my_tool", '{"param1": "a"}')) == {
        "name": "my_tool",
        "tool_call_id": "call_1",
        "result": "操作完成: a 10",
    }
    error = FunctionRegistry.call(ask("my_tool", {"param1": "a", "param2": "x"}))
    assert "result" not in error
    assert error["error"].startswith("invalid_arguments: param2 must be a whole number")


def test_async_functions_and_decorators():
    @register_function("async_tool", "异步工具")
    async def async_tool_func(param: str) -> str:
        await asyncio.sleep(0)
        return f"异步结果: {param}"

    def timeout_control(seconds: float) -> Any:
        def decorator(func: Any) -> Any:
            @functools.wraps(func)
            async def wrapper(*args: Any, **kwargs: Any) -> Any:
                return await asyncio.wait_for(func(*args, **kwargs), timeout=seconds)

            return wrapper

        return decorator

    @register_function("timed_tool", "")
    @timeout_control(0.01)
    async def timed_tool(seconds: float) -> str:
        """Waits.

        Args:
            seconds: how long
        """
        await asyncio.sleep(seconds)
        return "waited"

    assert FunctionRegistry.is_async("async_tool")
    assert FunctionRegistry.is_async("timed_tool")
    assert asyncio.run(execute_tool_call(ask("async_tool", {"param": "x"})))["result"] == (
        "异步结果: x"
    )
    assert FunctionRegistry.call(ask("timed_tool", {"seconds": 0}))["result"] == "waited"
    assert "TimeoutError" in FunctionRegistry.call(ask("timed_tool", {"seconds": 5}))["error"]
    schema = next(s for s in get_enabled_schemas() if s["function"]["name"] == "timed_tool")
    assert schema["function"]["description"] == "Waits."


def test_types():
    class Side(Enum):
        LEFT = "left"

    def angles(angles: List[float], side: "Side", at: Optional[int] = None) -> Any:  # noqa: UP006, UP037, UP045
        return f"{sum(angles)} {side.name} {at}"

    angles.__annotations__["side"] = Side
    register_function("angles_tool", "")(angles)
    given = {"angles": [1, 2.5], "side": "left", "at": None}
    assert FunctionRegistry.call(ask("angles_tool", given))["result"] == "3.5 LEFT None"
    assert "error" in FunctionRegistry.call(ask("angles_tool", {**given, "side": "right"}))


def test_the_yaml_layout(tmp_path):
    @register_function("tuned", "Its own words.")
    def tuned() -> str:
        return str(FunctionRegistry.get_config("tuned")["custom_param"])

    @register_function("off", "Never offered.")
    def off() -> str:
        return ""

    file = tmp_path / "llm_config.yaml"
    tools = {
        "tuned": {
            "enabled": True,
            "description": "The site's words.",
            "timeout": 10.0,
            "custom_param": "value",
        },
        "off": {"enabled": False},
    }
    file.write_text(yaml.safe_dump({"function_calling": {"tools": tools}}))
    FunctionRegistry.configure(file)
    schemas = {s["function"]["name"]: s["function"] for s in get_enabled_schemas()}
    assert "off" not in schemas
    assert schemas["tuned"]["description"] == "The site's words."
    assert FunctionRegistry.call(ask("tuned", ""))["result"] == "value"
    assert "unknown_tool" in FunctionRegistry.call(ask("off", ""))["error"]
    entry = next(e for e in FunctionRegistry.local().registry if e.name == "tuned")
    assert entry.timeout == 10.0


def test_the_bridge_gives_a_function_its_values(tmp_path):
    @register_function("valued", "")
    def valued() -> str:
        return str(FunctionRegistry.get_config("valued").get("port"))

    file = tmp_path / "tools.yaml"
    file.write_text("function_calling: {tools: {valued: {port: COM3}}}")
    assert FunctionRegistry.get_config("valued") == {}
    Registry.load(Ports(), load_tools_file(file), tools=[valued])
    assert valued() == "COM3"


def test_lru_cache_says_that_a_function_is_pure():
    ran: list[str] = []

    @register_function("expensive_calc", "计算密集型工具")
    @functools.lru_cache(maxsize=128)
    def expensive_calc_func(input_data: str) -> str:
        ran.append(input_data)
        return input_data.upper()

    @register_function("device", "Not pure.")
    def device(input_data: str) -> str:
        ran.append(input_data)
        return "ok"

    for name in ("expensive_calc", "device"):
        for _ in range(2):
            FunctionRegistry.call(ask(name, {"input_data": name}))
    assert ran == ["expensive_calc", "device", "device"]
    stats = FunctionRegistry.get_stats()
    assert stats["expensive_calc"]["cached"] == 1
    assert stats["device"]["cached"] == 0


def test_a_cache_in_front_of_a_device_is_refused():
    @register_function("arm_cached", "", motion=True)
    @functools.lru_cache
    def arm_cached(x: float) -> str:
        return "moved"

    assert "unknown_tool" in FunctionRegistry.call(ask("arm_cached", {"x": 1}))["error"]
    assert "its results can't be kept" in FunctionRegistry.problems[0].message


def test_so_many_at_once():
    running = most = 0

    @register_function("concurrent_tool", "并发控制工具", max_concurrent=5)
    async def concurrent_tool_func(param: int) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return f"处理完成: {param}"

    async def all_at_once() -> list[dict[str, Any]]:
        calls = (execute_tool_call(ask("concurrent_tool", {"param": i})) for i in range(20))
        return await asyncio.gather(*calls)

    answers = asyncio.run(all_at_once())
    assert [a["result"] for a in answers] == [f"处理完成: {i}" for i in range(20)]
    assert most == 5


def test_statistics():
    @register_function("counted", "")
    def counted(x: int) -> int:
        if x < 0:
            raise ValueError("negative")
        return x

    for x in (1, 2, 3, -1):
        FunctionRegistry.call(ask("counted", {"x": x}))
    FunctionRegistry.call(ask("counted", {"x": "one"}))
    stats = FunctionRegistry.get_stats()["counted"]
    assert (stats["calls"], stats["succeeded"], stats["errors"]) == (5, 3, 2)
    assert stats["success_rate"] == 0.6
    assert 0 < stats["p50_s"] <= stats["p95_s"] <= stats["total_s"]
    assert stats["avg_time"] == pytest.approx(stats["total_s"] / 4)

    @register_function("added_later", "")
    def added_later() -> str:
        return ""

    get_enabled_schemas()
    assert FunctionRegistry.get_stats()["counted"]["calls"] == 5


def test_one_name_is_one_function():
    def make(value: str) -> Any:
        def again() -> str:
            return value

        return again

    register_function("again", "")(make("first"))
    register_function("again", "")(make("second"))  # the same place: a cell that runs again
    assert FunctionRegistry.call(ask("again", {}))["result"] == "second"

    def other() -> str:
        return ""

    with pytest.raises(LoadError, match="a function again already"):
        register_function("again", "")(other)


def test_what_has_no_schema_is_skipped_and_reported():
    @register_function("unschemable", "")
    def unschemable(*anything: Any) -> str:
        return ""

    @register_function("fine", "")
    def fine() -> str:
        return "ok"

    assert FunctionRegistry.call(ask("fine", {}))["result"] == "ok"
    (problem,) = FunctionRegistry.problems
    assert problem.message.startswith("unschemable: unschemable takes *anything")


def test_a_folder_with_a_broken_file(tmp_path):
    (tmp_path / "good.py").write_text(
        "from lerobot_tool_bridge.functions import register_function\n"
        "@register_function('from_folder', '')\n"
        "def from_folder() -> str:\n"
        "    return 'here'\n"
    )
    (tmp_path / "bad.py").write_text("raise RuntimeError('no device')\n")
    assert FunctionRegistry.load_folder(tmp_path) == ["from_folder"]
    assert "bad.py is skipped: line 1: RuntimeError: no device" in (
        FunctionRegistry.problems[0].message
    )
    assert FunctionRegistry.call(ask("from_folder", {}))["result"] == "here"


def test_results_go_into_the_history_as_role_tool():
    @register_function("history", "")
    def history(x: int) -> dict[str, int]:
        return {"x": x}

    messages: list[dict[str, Any]] = []
    integrate_tool_result(messages, FunctionRegistry.call(ask("history", {"x": 1}, "c1")))
    integrate_tool_result(messages, FunctionRegistry.call(ask("history", {}, "c2")))
    assert messages == [
        {"role": "tool", "tool_call_id": "c1", "name": "history", "content": '{"x": 1}'},
        {
            "role": "tool",
            "tool_call_id": "c2",
            "name": "history",
            "content": "Error: invalid_arguments: x is missing.",
        },
    ]
