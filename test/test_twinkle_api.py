"""Code written for Twinkle's Tool and ToolManager."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.twinkle import Tool, ToolManager


def info(name: str) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": "搜索网络信息。",
            "parameters": {
                "type": "object",
                "properties": {"query": {"type": "string", "description": "搜索查询。"}},
                "required": ["query"],
            },
        },
    }


class Search(Tool):
    def __init__(self, name: str = "search") -> None:
        self.own = name
        self.seen: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, tool_name: str, arguments: dict[str, Any]) -> str:
        self.seen.append((tool_name, arguments))
        return f"搜索结果：{arguments['query']}"

    def tool_info(self) -> dict[str, Any]:
        return info(self.own)


class Broken(Search):
    def __call__(self, tool_name: str, arguments: dict[str, Any]) -> str:
        raise OSError(5, "Input/output error", "/dev/ttyUSB0")


def ask(name: str, arguments: Any, call_id: str = "call_1") -> dict[str, Any]:
    body = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": body}


def test_tool_is_abstract():
    with pytest.raises(TypeError):
        Tool()  # type: ignore[abstract]


def test_from_a_list_a_dict_and_empty():
    search, other = Search(), Search("calculator")
    listed = ToolManager([search, other])
    assert listed.names() == ["search", "calculator"]
    named = ToolManager({"search": search, "calc": other})
    assert named.names() == ["search", "calc"]
    empty = ToolManager()
    assert empty.names() == []
    assert empty.tool_infos() == []
    empty.register(search)
    empty.register(other)
    assert empty.names() == ["search", "calculator"]
    assert len(empty) == 2
    assert "search" in empty
    # the key of a dict is the name under which the model knows and calls it
    assert [i["function"]["name"] for i in named.tool_infos()] == ["search", "calc"]
    assert named(ask("calc", '{"query": "x"}')) == "搜索结果：x"
    assert other.seen[-1] == ("calc", {"query": "x"})
    assert other.tool_info() == info("calculator")


def test_infos_are_the_tools_own():
    assert ToolManager([Search()]).tool_infos() == [info("search")]


def test_register_replaces_and_unregister_removes():
    manager = ToolManager([Broken()])
    search = Search()
    manager.register(search)
    assert manager.names() == ["search"]
    assert manager(ask("search", {"query": "x"})) == "搜索结果：x"
    manager.unregister("search")
    manager.unregister("search")
    assert manager.names() == []
    assert "unknown_tool" in manager(ask("search", {"query": "x"}))


def test_a_copy_is_shallow():
    search = Search()
    manager = ToolManager([search])
    copy = manager.copy()
    copy.register(Search("more"))
    manager.unregister("search")
    assert manager.names() == []
    assert copy.names() == ["search", "more"]
    assert copy(ask("search", {"query": "x"})) == "搜索结果：x"
    assert len(search.seen) == 1


@pytest.mark.parametrize("arguments", ['{"query": "Python 教程"}', {"query": "Python 教程"}])
def test_an_openai_call_returns_the_text(arguments):
    assert ToolManager([Search()])(ask("search", arguments)) == "搜索结果：Python 教程"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (ask("find", "{}"), "unknown_tool"),
        (ask("search", '{"query": '), "bad_json"),
        (ask("search", "[]"), "arguments_not_object"),
        (ask("search", '{"query": 1}'), "query must be a text"),
        (ask("search", '{"text": "x"}'), "query is missing"),
        (ask("search", None), "query is missing"),
        (ask("broken", {"query": "x"}), "tool_error: broken failed: Input/output error"),
        ({}, "Error: "),
        ({"function": {}}, "bad_call"),
        ({"function": {"name": None}}, "bad_call"),
        (None, "Error: "),
        ("no json", "Error: "),
        (3, "Error: "),
        ([], "Error: "),
    ],
)
def test_errors_are_texts_and_nothing_is_raised(call, words):
    manager = ToolManager([Search(), Broken("broken")])
    answer = manager(call)
    assert isinstance(answer, str)
    assert answer.startswith("Error: ")
    assert words in answer
    assert "/dev" not in answer


def test_results_that_are_no_text_become_one():
    class Numbers(Search):
        def __call__(self, tool_name: str, arguments: dict[str, Any]) -> Any:
            return {"found": 3}

    assert json.loads(ToolManager([Numbers()])(ask("search", {"query": "x"}))) == {"found": 3}


def test_a_class_that_is_no_tool_is_refused():
    with pytest.raises(LoadError, match="no tool_info"):
        ToolManager([object()])

    class Bad(Search):
        def tool_info(self) -> dict[str, Any]:
            return {"type": "function", "function": {"name": "has space"}}

    with pytest.raises(LoadError, match="no name for a tool"):
        ToolManager([Bad()])


def test_many_threads_with_the_same_id():
    manager = ToolManager([Search()])
    texts = [f"q{i}" for i in range(100)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda t: manager(ask("search", {"query": t})), texts))
    assert answers == [f"搜索结果：{t}" for t in texts]
    counts = manager.statistics()["search"]
    assert (counts["calls"], counts["succeeded"]) == (100, 100)


def test_a_tool_that_hangs_is_answered():
    release = threading.Event()

    class Hangs(Search):
        timeout = 0.1

        def __call__(self, tool_name: str, arguments: dict[str, Any]) -> str:
            release.wait(30)
            return ""

    manager = ToolManager([Hangs()])
    assert "it still runs" in manager(ask("search", {"query": "x"}))
    assert "unavailable" in manager(ask("search", {"query": "x"}))
    release.set()


def test_a_tool_that_calls_the_manager():
    manager = ToolManager()

    class Twice(Search):
        def __call__(self, tool_name: str, arguments: dict[str, Any]) -> str:
            inner = manager(ask("search", arguments))
            return f"{inner} {inner}"

    manager.register(Search())
    manager.register(Twice("twice"))
    assert manager(ask("twice", {"query": "x"})) == "搜索结果：x 搜索结果：x"
