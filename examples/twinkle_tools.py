"""A tool and a manager as Twinkle's page describes them. Changed for this package: the imports."""

import sys

from lerobot_tool_bridge.twinkle import Tool, ToolManager


class SearchTool(Tool):
    def __call__(self, tool_name: str, arguments: dict) -> str:
        query = arguments.get("query", "")
        return f"搜索结果：{query}"

    def tool_info(self):
        return {
            "type": "function",
            "function": {
                "name": "search",
                "description": "搜索网络信息。",
                "parameters": {
                    "type": "object",
                    "properties": {"query": {"type": "string", "description": "搜索查询。"}},
                    "required": ["query"],
                },
            },
        }


class FailingTool(SearchTool):
    def __call__(self, tool_name: str, arguments: dict) -> str:
        raise ConnectionError("no network")


def main() -> int:
    manager = ToolManager({"search": SearchTool(), "search_web": FailingTool()})
    print(manager.names(), len(manager.tool_infos()))
    for name, arguments in (
        ("search", '{"query": "Python 教程"}'),
        ("search", '{"query": '),
        ("search", '{"text": "x"}'),
        ("search_web", '{"query": "x"}'),
        ("find", "{}"),
    ):
        call = {
            "id": "call_1",
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }
        print(manager(call))
    return 0


if __name__ == "__main__":
    sys.exit(main())
