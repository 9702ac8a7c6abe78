"""Every error of the core, in one tree.

BridgeError
├── CallError            one call can't go on; the text is read by the model
│   ├── Rejection        it was refused before it ran            (status ``rejected``)
│   └── ToolFailure      it ran and did not do what it should    (status ``failed``)
├── UnreadableMessage    a message that has no call to answer    (event code ``bad_message``)
└── LoadError            a tool, a catalogue or a file can't be used; read by the person
"""

from __future__ import annotations


class BridgeError(Exception):
    """Base of everything that this package raises on purpose."""


class CallError(BridgeError):
    """Why one call got no good result.

    Args:
        code: One word of the protocol (``invalid_arguments``, ``unreachable``, ...).
        message: A sentence for the model: what is wrong, what was expected, what to do.
            It never holds a path of this machine or a traceback.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Rejection(CallError):
    """The call was refused before anything ran."""


class ToolFailure(CallError):
    """A tool or a port could not do what was asked.

    A port that was cancelled and could not get its driver to confirm the cancel raises this with
    the code ``cancel_unconfirmed`` in place of the ``CancelledError``.
    """


class UnreadableMessage(BridgeError):
    """The message can't be read at all, so there is no call to answer."""

    code = "bad_message"


class LoadError(BridgeError):
    """A tool, catalogue or configuration file can't be used.

    Args:
        code: ``schema_ref``, ``schema_pattern``, ``tool_name``, ``bad_file``, ...
        message: A sentence for the person who starts the node.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
