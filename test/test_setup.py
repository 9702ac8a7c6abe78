"""scripts/setup_venv.py ends with one line that says what to install."""

import importlib.util
import platform
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def setup():
    spec = importlib.util.spec_from_file_location("setup_venv", ROOT / "scripts/setup_venv.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def reason(setup) -> str:
    with pytest.raises(SystemExit) as ended:
        setup.check_machine()
    line = str(ended.value)
    assert "\n" not in line
    return line


def test_this_machine_will_do(setup):
    setup.check_machine()


def test_no_compiler(setup, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert "apt install g++" in reason(setup)


def test_no_headers(setup, monkeypatch, tmp_path):
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    assert f"apt install {version}-dev" in reason(setup)


def test_no_gl(setup, monkeypatch):
    monkeypatch.setattr(setup.ctypes.util, "find_library", lambda name: None)
    assert "libegl1" in reason(setup)


@pytest.mark.parametrize("version", [(3, 9, 18), (3, 15, 0)])
def test_unsupported_python(setup, monkeypatch, version):
    monkeypatch.setattr(sys, "version_info", version)
    line = reason(setup)
    assert "3.10 to 3.14" in line
    assert "make PYTHON=" in line


def test_another_processor(setup, monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert "apt" in reason(setup)
