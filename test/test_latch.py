"""Signals in quick succession, wherever they hit the code that waits for them."""

import sys
import threading

from lerobot_tool_bridge.latch import Latch

PROGRAM = """
import signal
from lerobot_tool_bridge.latch import Latch

latch = Latch()
signal.signal(signal.SIGALRM, lambda *_: latch.set())
signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
for _ in range(20000):
    latch = Latch()
    while not latch.wait(0.001):
        pass
signal.setitimer(signal.ITIMER_REAL, 0)
print("through")
"""


def test_a_storm_of_signals(spawn):
    process = spawn(sys.executable, "-c", PROGRAM)
    assert process.wait(60.0) == 0
    assert "through" in process.output


def test_set_and_wait():
    latch = Latch()
    assert not latch.wait(0.0)
    assert not latch.is_set()
    threading.Timer(0.01, latch.set).start()
    assert latch.wait(30.0)
    assert latch.is_set()
    assert latch.wait(), "it stays set"
