"""``std_msgs/String`` as it goes over the wire (CDR).

Calls are taken as bytes: rclpy raises out of ``spin`` where a String is not UTF-8, and any
publisher could end the bridge with one. Results are sent as bytes, since they are UTF-8 already.
"""

from __future__ import annotations

import json
import struct
from typing import Any

from rclpy.publisher import Publisher

_LITTLE = b"\x00\x01\x00\x00"


def decode_string(data: bytes) -> bytes:
    """The text of a serialized String, as bytes of whatever encoding they are."""
    order = "<" if len(data) > 1 and data[1] & 1 else ">"
    if len(data) < 8:
        return b""
    (length,) = struct.unpack_from(f"{order}I", data, 4)
    return data[8 : 8 + length].removesuffix(b"\x00")


def encode_string(text: bytes) -> bytes:
    """A serialized String."""
    return b"".join((_LITTLE, struct.pack("<I", len(text) + 1), text, b"\x00"))


def publish_json(publisher: Publisher, message: Any) -> None:
    """Publishes a value as the JSON text of a String."""
    try:
        text = json.dumps(message, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # half a character in an id or a name; escaped, it can travel
        text = json.dumps(message).encode()
    publisher.publish(encode_string(text))
