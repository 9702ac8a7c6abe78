"""``std_msgs/String`` as it goes over the wire (CDR).

Calls are taken as bytes: rclpy raises out of ``spin`` where a String is not UTF-8, and any
publisher could end the bridge with one. Results are sent as bytes, since they are UTF-8 already.
"""

from __future__ import annotations

import struct

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
