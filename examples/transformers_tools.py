"""Functions as tools, as Transformers' page describes them. Changed here: the imports."""

import json
import sys

from lerobot_tool_bridge.local import Local
from lerobot_tool_bridge.transformers import get_json_schema


def get_current_temperature(location: str, unit: str):
    """
    Get the current temperature at a location.

    Args:
        location: The location to get the temperature for, in the format "City, Country"
        unit: The unit to return the temperature in. (choices: ["celsius", "fahrenheit"])
    """
    return 22.0


def get_current_wind_speed(location: str):
    """
    Get the current wind speed in km/h at a given location.

    Args:
        location: The location to get the wind speed for, in the format "City, Country"
    """
    return 6.0


tools = [get_current_temperature, get_current_wind_speed]


def main() -> int:
    print(json.dumps(get_json_schema(get_current_wind_speed)["function"]["parameters"]))

    messages = [{"role": "user", "content": "What's the temperature in Paris?"}]
    # what a model answered; its chat template wants tools=[get_json_schema(t) for t in tools]
    tool_call = {
        "name": "get_current_temperature",
        "arguments": {"location": "Paris, France", "unit": "celsius"},
    }
    answer = {"role": "assistant", "tool_calls": [{"type": "function", "function": tool_call}]}
    messages += Local(tools).turn(answer)  # the message itself, and a role=tool message
    print([(m["role"], m["content"]) for m in messages])
    return 0


if __name__ == "__main__":
    sys.exit(main())
