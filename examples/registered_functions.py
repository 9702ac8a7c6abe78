"""Functions with a decorator, as a function registry describes them. Changed: the imports.

The same file works in the bridge's folder of tools (parameter ``tools_dir``).
"""

import asyncio
import sys
from functools import lru_cache, wraps

from lerobot_tool_bridge.functions import FunctionRegistry, get_enabled_schemas


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
    factor = FunctionRegistry.get_config("my_tool").get("custom_param", 1)
    return f"操作完成: {param1} {param2 * factor}"


@FunctionRegistry.register_function("async_tool", "异步工具")
async def async_tool_func(param: str) -> str:
    """异步工具示例"""
    await asyncio.sleep(0.01)
    return f"异步结果: {param}"


def validate_parameters(func):
    def wrapper(*args, **kwargs):
        if not all(isinstance(arg, str) for arg in kwargs.values()):
            return "参数类型错误"
        return func(*args, **kwargs)

    return wrapper


@FunctionRegistry.register_function("safe_tool", "安全工具")
@validate_parameters
def safe_tool_func(text: str) -> str:
    return f"处理结果: {text}"


def shouting(func):
    @wraps(func)
    async def wrapper(*args, **kwargs):
        return (await func(*args, **kwargs)).upper()

    return wrapper


@FunctionRegistry.register_function("loud_tool", "")
@shouting
async def loud_tool_func(text: str) -> str:
    """Repeats a text loudly."""
    return text


@FunctionRegistry.register_function("expensive_calc", "计算密集型工具")
@lru_cache(maxsize=128)
def expensive_calc_func(input_data: str) -> str:
    return str(sum(map(ord, input_data)))


CONFIG = {
    "function_calling": {
        "tools": {
            "my_tool": {"enabled": True, "timeout": 10.0, "custom_param": 3},
            "safe_tool": {"description": "A safe tool"},
            "async_tool": {"enabled": True},
        }
    }
}


async def conversation() -> None:
    for name, arguments in (
        ("my_tool", '{"param1": "a", "param2": 2}'),
        ("my_tool", '{"param1": "a", "param2": "two"}'),
        ("async_tool", '{"param": "b"}'),
        ("safe_tool", '{"text": "c"}'),
        ("loud_tool", '{"text": "d"}'),
        ("expensive_calc", '{"input_data": "e"}'),
        ("expensive_calc", '{"input_data": "e"}'),
    ):
        call = {"type": "function", "function": {"name": name, "arguments": arguments}}
        answer = await FunctionRegistry.execute_tool_call(call)
        print(answer.get("result", answer.get("error")))


def main() -> int:
    FunctionRegistry.configure(CONFIG)
    print([s["function"]["name"] for s in get_enabled_schemas()])
    asyncio.run(conversation())
    stats = FunctionRegistry.get_stats()
    print(stats["my_tool"]["calls"], stats["my_tool"]["success_rate"])
    print(stats["expensive_calc"]["cached"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
