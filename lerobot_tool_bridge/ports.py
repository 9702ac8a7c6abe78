"""What tools need of a robot.

Implemented in ``ros/`` with standard interfaces; metres in the robot's base frame, radians,
seconds. Every method raises ``ToolFailure``: ``unavailable`` (no driver, no fresh data),
``goal_rejected``, ``tool_error``, or ``cancel_unconfirmed`` when it was cancelled and the driver
did not confirm that it stopped. A coroutine that is cancelled cancels its goal first, waits a
short while for the confirmation, and then lets ``CancelledError`` through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from lerobot_tool_bridge.music import Playing
    from lerobot_tool_bridge.robot import Robot


@dataclass(frozen=True, slots=True)
class Waypoint:
    """One point of a joint trajectory.

    Attributes:
        positions: Joint positions in the order of ``Robot.arm.joints``, radians.
        time: Seconds from the start of the trajectory, growing.
    """

    positions: tuple[float, ...]
    time: float


@dataclass(frozen=True, slots=True)
class GripperState:
    """What the gripper measured when its command ended.

    Attributes:
        position: In the unit of ``Robot.gripper`` (radians or metres).
        effort: As the driver reports it (N, N·m, or a share of the maximum); 0 where unknown.
        stalled: The driver's flag; a hint, never the judge of a grasp.
        reached_goal: The driver's flag; likewise.
    """

    position: float
    effort: float
    stalled: bool
    reached_goal: bool


class ArmPort(Protocol):
    async def positions(self) -> tuple[float, ...]:
        """Measured joint positions, fresh (< 0.5 s old), in the order of ``Robot.arm.joints``."""

    async def move(self, path: Sequence[Waypoint]) -> tuple[float, ...]:
        """Runs a trajectory that starts at the measured pose; returns the measured end.

        ``path`` leaves the start out: its first waypoint is the first one to go to.

        Raises:
            ToolFailure: The controller aborted; the text names each joint that is not where it
                should be, in degrees (``elbow_flex stopped at 31.0° instead of 40.0°``).
        """

    async def gripper_state(self) -> GripperState:
        """The gripper as measured now, from the joint states."""

    async def gripper(self, position: float, max_effort: float) -> GripperState:
        """Moves the gripper and returns what was measured at the end.

        A stall is an end like any other: the caller judges by position and effort.
        """


class GimbalPort(Protocol):
    async def positions(self) -> tuple[float, float]:
        """Pan and tilt, radians: measured where the head can, else as last commanded."""

    async def move(self, pan: float, tilt: float, duration: float) -> tuple[float, float]:
        """Turns the head (radians, seconds) and returns where it is then."""

    @property
    def measures(self) -> bool:
        """False where the driver only knows what it commanded (hobby servos)."""


@dataclass(frozen=True, slots=True)
class Intrinsics:
    """A camera's optics, as ``sensor_msgs/CameraInfo`` has them.

    Attributes:
        width, height: Picture that they are for, pixels.
        model: ``plumb_bob``, ``rational_polynomial`` or ``equidistant``.
        d: Coefficients of the lens.
        k: Camera matrix, row by row.
    """

    width: int
    height: int
    model: str
    d: tuple[float, ...]
    k: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture as it came from the robot, not decoded.

    Attributes:
        encoding: ``sensor_msgs/Image`` encoding (``rgb8``, ``16UC1``, ...), or the text of
            ``CompressedImage.format`` when ``compressed``.
        data: The bytes; rows of ``step`` bytes where not compressed.
        stamp: Seconds since the epoch of the header's clock.
        frame_id: The header's frame.
        source: Topic or service that it came from, for messages.
        intrinsics: The camera's, at this or another size; None where they are not known.
    """

    encoding: str
    data: bytes
    width: int
    height: int
    step: int
    big_endian: bool
    compressed: bool
    stamp: float
    frame_id: str
    source: str
    intrinsics: Intrinsics | None = None


class CameraPort(Protocol):
    async def still(self) -> Frame:
        """A picture taken after this call began: by service, else the topic's next frame."""

    def publish_observation(self, data: bytes, media: str, frame: Frame) -> None:
        """Publishes a saved still (``media``: ``png`` or ``jpeg``) on ``~/observations``."""


class SpeakerPort(Protocol):
    async def say(self, text: str) -> str:
        """Speaks; returns the sentence that tells what was heard. Never blocks motion."""


class MusicPort(Protocol):
    """One player; see ``MusicPlayer``. ``play`` and ``stop`` block for a moment."""

    volume: int

    @property
    def playing(self) -> Playing | None:
        """What plays now."""

    def play(self, name: str, path: Path) -> Playing:
        """Plays a file in place of what plays now, and returns when it has begun."""

    def stop(self) -> Playing | None:
        """Ends what plays, and returns it."""

    def lowered(self) -> AbstractContextManager[None]:
        """Plays softly meanwhile."""


@dataclass(frozen=True, slots=True)
class Ports:
    """What one robot offers; None for what it lacks (and everything, in the offline checker).

    Attributes:
        robot: The robot's description: limits and geometry for schemas and planning.
        output_dir: Where tools may leave files.
        extra: Ports that other packages' tools bring along, by name.
    """

    robot: Robot | None = None
    arm: ArmPort | None = None
    gimbal: GimbalPort | None = None
    camera: CameraPort | None = None
    speaker: SpeakerPort | None = None
    output_dir: Path = Path("observations")
    extra: Mapping[str, Any] | None = None
    music: MusicPort | None = None
