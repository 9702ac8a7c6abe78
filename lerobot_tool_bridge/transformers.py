"""For code that is written for Transformers: ``get_json_schema`` as in ``transformers.utils``.

The functions themselves are tools: ``Local([get_current_temperature])`` runs their calls, and
``Local.turn`` answers with the messages that a chat template takes.
"""

from __future__ import annotations

from lerobot_tool_bridge.core.signature import (
    DocstringParsingException,
    TypeHintParsingException,
    get_json_schema,
)

__all__ = ["DocstringParsingException", "TypeHintParsingException", "get_json_schema"]
