"""What a tool is: a name, a schema, the resources it needs, and ``run``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from lerobot_tool_bridge.ports import Ports


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call achieved.

    Attributes:
        content: The text of the ``role=tool`` message.
        artifacts: Names of files that the call left, relative to the output folder.
    """

    content: str
    artifacts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallContext:
    """What a tool may know of the call that it runs.

    Attributes:
        call_id: The id under which the call is answered.
        feedback: Publishes one sentence of progress as a ``feedback`` event.
    """

    call_id: str
    feedback: Callable[[str], None] = field(default=lambda detail: None)


class Tool(ABC):
    """One thing that a policy can ask for.

    A subclass states its class attributes, builds its schema in ``parameters`` and does the work
    in ``run``. Instances are made once, when the bridge is configured; the schema is compiled
    once. ``ports`` may be empty (``Ports()``), as it is for the offline checker: only ``run`` may
    use what the ports reach.

    Attributes:
        name: Letters, digits, ``_`` and ``-``; at most 64.
        description: For the model: what it does, limits, units, and what it can't do.
        needs: Ports without which the tool is not offered (``arm``, ``gimbal``, ``camera``).
        resources: Calls that share a resource run one after the other, in order.
        motion: True for what moves the robot: refused while stopped, cancelled by ``stop``.
        timeout: Seconds that a call may take, unless the tools file says otherwise.
        max_concurrent: Calls of it at once; the others wait. 0 for no limit.
        pure: True where the same arguments always give the same result and nothing else happens:
            then results are kept and given again. Never for what has to do with a device.
        any_settings: Every key of the tools file is a setting of this tool.
        family: An entry of this name in the tools file holds for all tools of the family.
    """

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()
    resources: ClassVar[frozenset[str]] = frozenset()
    motion: ClassVar[bool] = False
    timeout: float = 30.0
    max_concurrent: int = 0
    pure: ClassVar[bool] = False
    any_settings: ClassVar[bool] = False
    family: ClassVar[str] = ""

    def __init__(self, ports: Ports, settings: Mapping[str, Any] | None = None) -> None:
        self.ports = ports
        self.settings: Mapping[str, Any] = settings or {}

    @property
    @abstractmethod
    def description(self) -> str: ...

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """JSON schema of the arguments (``type: object``)."""

    def missing(self) -> str:
        """Why it can't be offered, in a sentence that says how to turn it on; empty where it can.

        For what a site has to set up first.
        """
        return ""

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Refuses what a schema can't judge, before the call is queued; fast, touches nothing.

        Args:
            arguments: They have passed the schema.

        Raises:
            Rejection: Mostly ``invalid_arguments``; names the argument and says what to change.
        """
        return

    @abstractmethod
    async def run(self, arguments: dict[str, Any], context: CallContext) -> Outcome | str:
        """Does the work; ``arguments`` have passed the schema.

        Cancelled through ``asyncio.CancelledError``: let it through, after the ports have
        stopped what they started.

        Raises:
            ToolFailure: The tool did not do what was asked; says why and what to do.
        """
