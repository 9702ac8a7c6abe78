"""Control table of the STS3215: data only."""

from __future__ import annotations

from dataclasses import dataclass

MODEL_NUMBER = 777
TICKS_PER_TURN = 4096
CENTER = 2048
"""Position that stands for a joint's zero."""
EEPROM_END = 40
"""Registers below keep their values without power, where ``LOCK`` was 0 as they were written."""


@dataclass(frozen=True, slots=True)
class Register:
    """One entry of the table.

    Attributes:
        name: As LeRobot spells it, in lower case.
        address: First byte.
        size: Bytes.
        sign_bit: Bit that holds the sign, the bits below the magnitude; None if never negative.
    """

    name: str
    address: int
    size: int
    sign_bit: int | None = None


MODEL = Register("model_number", 3, 2)
ID = Register("id", 5, 1)
BAUD_RATE = Register("baud_rate", 6, 1)
RETURN_DELAY = Register("return_delay_time", 7, 1)  # 2 µs
MIN_POSITION = Register("min_position_limit", 9, 2)
MAX_POSITION = Register("max_position_limit", 11, 2)
MAX_TEMPERATURE = Register("max_temperature_limit", 13, 1)  # °C
MAX_VOLTAGE = Register("max_voltage_limit", 14, 1)  # 0.1 V
MIN_VOLTAGE = Register("min_voltage_limit", 15, 1)  # 0.1 V
MAX_TORQUE = Register("max_torque_limit", 16, 2)  # 0.1 %
PHASE = Register("phase", 18, 1)
P_GAIN = Register("p_coefficient", 21, 1)
D_GAIN = Register("d_coefficient", 22, 1)
I_GAIN = Register("i_coefficient", 23, 1)
HOMING_OFFSET = Register("homing_offset", 31, 2, 11)
OPERATING_MODE = Register("operating_mode", 33, 1)  # 0: position
TORQUE_ENABLE = Register("torque_enable", 40, 1)
ACCELERATION = Register("acceleration", 41, 1)  # 100 ticks/s²; 0: as fast as it can
GOAL_POSITION = Register("goal_position", 42, 2, 15)
GOAL_TIME = Register("goal_time", 44, 2)
GOAL_VELOCITY = Register("goal_velocity", 46, 2, 15)  # ticks/s; 0: as fast as it can
TORQUE_LIMIT = Register("torque_limit", 48, 2)  # 0.1 %
LOCK = Register("lock", 55, 1)
PRESENT_POSITION = Register("present_position", 56, 2, 15)
PRESENT_VELOCITY = Register("present_velocity", 58, 2, 15)  # ticks/s
PRESENT_LOAD = Register("present_load", 60, 2, 10)  # 0.1 % of the drive
PRESENT_VOLTAGE = Register("present_voltage", 62, 1)  # 0.1 V
PRESENT_TEMPERATURE = Register("present_temperature", 63, 1)  # °C
STATUS = Register("status", 65, 1)
MOVING = Register("moving", 66, 1)
PRESENT_CURRENT = Register("present_current", 69, 2, 15)  # 6.5 mA
