"""The bridge as it is, with the benchmark's tools in its list."""

from lerobot_tool_bridge import tools
from lerobot_tool_bridge.ros import bridge

if __name__ == "__main__":
    tools.BUILTIN = (*tools.BUILTIN, "bench.tools:Noop", "bench.tools:OneAction")
    raise SystemExit(bridge.main())
