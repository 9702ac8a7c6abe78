"""The emulated devices, by clients that share no code with them."""

import socket
import threading
import time

import pytest
import serial
from harness import wait_for

from lerobot_tool_bridge.sim.devices.mjpeg import MjpegServer
from lerobot_tool_bridge.sim.devices.zl_ascii import ZlAsciiHead


class Recorder:
    def __init__(self):
        self.targets = []

    def set_target(self, pulse_us, time_ms):
        self.targets.append((pulse_us, time_ms))


@pytest.fixture
def head():
    servos = {0: Recorder(), 1: Recorder()}
    head = ZlAsciiHead(servos)
    head.servos = servos
    yield head
    head.close()


def test_commands_arrive_whole_in_pieces_and_in_braces(head):
    with serial.Serial(head.path, 115200, timeout=2) as port:
        port.write(b"#000P1500T1000!")
        port.write(b"{#000P0500T0100!#001P2500T9999!}")
        port.write(b"#001P16")
        port.flush()
        wait_for(lambda: len(head.servos[1].targets) == 1)
        port.write(b"00T0020!")
        wait_for(lambda: len(head.servos[1].targets) == 2)
    assert head.servos[0].targets == [(1500, 1000), (500, 100)]
    assert head.servos[1].targets == [(2500, 9999), (1600, 20)]


def test_garbage_unknown_servos_and_pulses_out_of_range_move_nothing(head):
    with serial.Serial(head.path, 115200, timeout=2) as port:
        port.write(b"\xff\x00#0#000P9000T0100!#007P1500T0100!#000PRAD!" + b"#" * 5000)
        port.write(b"#255P1400T0050!")
        wait_for(lambda: head.servos[1].targets)
    assert head.servos[0].targets == [(1400, 50)]
    assert head.servos[1].targets == [(1400, 50)]


def test_stop_holds_a_servo_half_way(head):
    with serial.Serial(head.path, 115200) as port:
        port.write(b"{#000P1500T0000!#001P1500T0000!}#000P2500T9000!")
        port.write(b"#000PDST!")
        wait_for(lambda: len(head.servos[0].targets) == 3)
    pulse, time_ms = head.servos[0].targets[-1]
    assert 1500 <= pulse < 2000
    assert time_ms == 0


def test_version_is_answered_and_nothing_else(head):
    with serial.Serial(head.path, 115200, timeout=2) as port:
        port.write(b"#000PRAD!#009PVER!#001PVER!")
        answer = port.read_until(b"!")
        assert answer.startswith(b"#001P")
        assert b"V" in answer
        port.timeout = 0.05
        assert port.read(1) == b""


def test_a_second_client_finds_the_port_as_the_first_did(head):
    for pulse in (1000, 2000):
        with serial.Serial(head.path, 115200) as port:
            port.write(b"#000P%04dT0100!" % pulse)
            port.flush()
        wait_for(lambda p=pulse: head.servos[0].targets[-1:] == [(p, 100)])


def test_pulling_the_plug_is_an_error_for_the_client(head):
    with serial.Serial(head.path, 115200, timeout=1) as port:
        head.close()
        with pytest.raises(serial.SerialException):
            port.read(1)


def read_frames(server, count):
    with socket.create_connection(("127.0.0.1", server.port), 5) as client:
        client.sendall(b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
        stream = client.makefile("rb")
        assert b"200" in stream.readline()
        frames = []
        while len(frames) < count:
            line = stream.readline()
            assert line, "the stream ended"
            if line.lower().startswith(b"content-length"):
                stream.readline()
                frames.append(stream.read(int(line.split(b":")[1])))
        return frames


def test_grabs_only_while_somebody_watches_and_in_one_thread():
    threads = []
    ended = []

    def grab():
        threads.append(threading.get_ident())
        return b"picture %d" % len(threads)

    server = MjpegServer(0, grab, fps=200, finish=lambda: ended.append(threading.get_ident()))
    assert not threads
    frames = read_frames(server, 3)
    assert len(set(frames)) == 3
    wait_for(lambda: server.clients == 0)
    count = len(threads)
    time.sleep(0.05)
    assert len(threads) <= count + 1
    assert read_frames(server, 2)
    server.close()
    server.close()
    assert set(threads) == set(ended)
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", server.port), 1)


def test_a_client_that_does_not_read_holds_up_nobody():
    server = MjpegServer(0, lambda: b"x" * 100_000, fps=200)
    with socket.create_connection(("127.0.0.1", server.port)) as lazy:
        lazy.sendall(b"GET /stream HTTP/1.0\r\n\r\n")
        assert len(read_frames(server, 20)) == 20
    server.close()


def test_a_grab_that_fails_skips_the_frame():
    answers = iter([b"one", None, b"two"])

    def grab():
        answer = next(answers, b"more")
        if answer is None:
            raise RuntimeError("no picture")
        return answer

    server = MjpegServer(0, grab, fps=100)
    assert read_frames(server, 2)[-1] in (b"two", b"more")
    server.close()
