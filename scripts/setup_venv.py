"""Makes the virtual environment with ROS 2, this package and its tools. Standard library only.

Each step leaves a stamp with a fingerprint of what it was made from, so that a second run only
looks. Run by ``make setup``.
"""

from __future__ import annotations

import argparse
import ctypes.util
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "lerobot_tool_bridge"
EXTRAS = "sim,speech,dataset,policy,test,lint"
SUPPORTED = ((3, 10), (3, 14))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--venv", default=".venv", help="folder of the environment")
    parser.add_argument("--python", default="", help="interpreter to make it from")
    args = parser.parse_args()
    venv = ROOT / args.venv
    check_machine()
    make_venv(venv, args.python)
    python = venv / "bin" / "python"
    step(venv, "ros", "installing ROS 2 Kilted from PyPI", install_ros, python)
    step(venv, "interfaces", "building interfaces/control_msgs (half a minute)", build, python)
    step(venv, "package", f"installing {PACKAGE}[{EXTRAS}]", install_package, python)


def fail(reason: str) -> None:
    sys.exit(f"setup: {reason}")


def check_machine() -> None:
    """Ends with one line that says what to install where the machine lacks something."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        fail(
            "the ROS 2 wheels on PyPI are for Linux on x86_64 only; on other machines install "
            "ROS 2 from apt and build with colcon."
        )
    low, high = SUPPORTED
    if not low <= sys.version_info[:2] <= high:
        fail(
            f"Python {platform.python_version()} is not supported; install Python "
            f"{low[0]}.{low[1]} to {high[0]}.{high[1]} and say: make PYTHON=python3.12"
        )
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        fail(f"this Python has no venv module: sudo apt install {version}-venv")
    if not (shutil.which("g++") or shutil.which("c++")):
        fail("there is no C++ compiler: sudo apt install g++")
    if not (Path(sysconfig.get_path("include")) / "Python.h").is_file():
        fail(f"Python's headers are missing: sudo apt install {version}-dev")
    if not (ctypes.util.find_library("EGL") or ctypes.util.find_library("OSMesa")):
        fail(
            "the virtual camera needs a GL library that works without a display: "
            "sudo apt install libegl1 libgl1-mesa-dri (or libosmesa6)"
        )


def make_venv(venv: Path, wanted: str) -> None:
    """Makes the environment; anew only where another Python was asked for by name."""
    python = venv / "bin" / "python"
    ours = platform.python_version_tuple()[:2]
    if python.exists():
        try:
            have = tuple(
                subprocess.check_output(
                    [python, "-c", "import platform;print(platform.python_version())"], text=True
                ).split(".")[:2]
            )
        except (OSError, subprocess.CalledProcessError):
            have = ()
        if have == ours or (have and not wanted):
            return
        say(f"{venv.name} has Python {'.'.join(have) or '(broken)'}, making it anew")
        shutil.rmtree(venv)
    say(f"making {venv.name} with Python {platform.python_version()}")
    subprocess.run([sys.executable, "-m", "venv", venv], check=True, env=clean_environment())
    pip(python, "--upgrade", "pip")


def step(venv: Path, name: str, doing: str, action, python: Path) -> None:
    """Runs one step of the set-up, unless it was done from the same inputs."""
    inputs = {
        "ros": ["requirements/ros-kilted.txt", "requirements/interfaces.txt"],
        "interfaces": ["interfaces/control_msgs", "requirements/interfaces.txt"],
        "package": ["setup.py", "setup.cfg", "package.xml", "launch"],
    }[name]
    digest = hashlib.sha256((Path(__file__).read_text() + EXTRAS).encode())
    for entry in inputs:
        path = ROOT / entry
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                digest.update(file.read_bytes())
    stamp = venv / f".stamp-{name}"
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return
    say(doing)
    action(venv, python)
    stamp.write_text(digest.hexdigest())


def install_ros(venv: Path, python: Path) -> None:
    pip(python, "-r", "requirements/ros-kilted.txt", "-r", "requirements/interfaces.txt")


def build(venv: Path, python: Path) -> None:
    """Builds the interfaces with cmake against the wheels, and installs them into the venv."""
    include, numpy = subprocess.check_output(
        [
            python,
            "-c",
            "import sysconfig, numpy;"
            "print(sysconfig.get_path('include')); print(numpy.get_include())",
        ],
        text=True,
        env=clean_environment(),
    ).split("\n")[:2]
    # The wheels' cmake files name the folders of the machine that they were built on.
    there = re.compile(r"/opt/python/cp\d+-cp\d+/(include/python[\d.]+|lib/[^;\"]*?/include)")
    for file in (venv / "share").rglob("*.cmake"):
        text = file.read_text()
        if "/opt/python/" in text:
            file.write_text(
                there.sub(lambda m: include if m[1].startswith("include") else numpy, text)
            )
    folder = venv / "build" / "control_msgs"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    trouble = "building the interfaces failed"
    env = clean_environment()
    env["PATH"] = f"{venv / 'bin'}:{env['PATH']}"
    env["CMAKE_PREFIX_PATH"] = env["AMENT_PREFIX_PATH"] = str(venv)
    logged(
        folder / "cmake.log",
        trouble,
        [
            venv / "bin" / "cmake",
            "-G",
            "Ninja",
            "-DBUILD_TESTING=OFF",
            "-DCMAKE_BUILD_TYPE=Release",
            f"-DCMAKE_INSTALL_PREFIX={venv}",
            f"-DPython3_EXECUTABLE={python}",
            ROOT / "interfaces" / "control_msgs",
        ],
        cwd=folder,
        env=env,
    )
    logged(folder / "ninja.log", trouble, [venv / "bin" / "ninja", "install"], cwd=folder, env=env)


def install_package(venv: Path, python: Path) -> None:
    """Installs the package so that edits count at once, and as a ROS package of this prefix."""
    pip(python, "--editable", f".[{EXTRAS}]")
    index = venv / "share" / "ament_index" / "resource_index" / "packages"
    index.mkdir(parents=True, exist_ok=True)
    (index / PACKAGE).touch()
    share = venv / "share" / PACKAGE
    programs = venv / "lib" / PACKAGE
    for folder in (share, programs):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    for name in ("package.xml", "config", "examples"):
        (share / name).symlink_to(ROOT / name)
    (share / "launch").mkdir()  # ros2 launch does not follow a link to a folder
    for file in (ROOT / "launch").glob("*.py"):
        (share / "launch" / file.name).symlink_to(file)
    for line in re.findall(r'f"(\w+) = \{NAME\}', (ROOT / "setup.py").read_text()):
        (programs / line).symlink_to(venv / "bin" / line)


def clean_environment() -> dict[str, str]:
    """The environment without what another environment's ROS wheels left in it."""
    return {
        key: value
        for key, value in os.environ.items()
        if key not in ("_ROS_WHEELS_BOOTSTRAP_COMPLETE", "LD_LIBRARY_PATH", "PYTHONPATH")
    }


def pip(python: Path, *args: str) -> None:
    command = [python, "-m", "pip", "install", "--disable-pip-version-check", *args]
    logged(
        python.parent.parent / "pip.log",
        "pip could not install what is needed",
        command,
        cwd=ROOT,
        env=clean_environment(),
    )


def logged(log: Path, trouble: str, command: list, **kwargs) -> None:
    """Runs a command; shows the end of its output only where it failed."""
    with log.open("wb") as out:
        code = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, **kwargs).returncode
    if code:
        print("\n".join(log.read_text(errors="replace").splitlines()[-20:]), file=sys.stderr)
        fail(f"{trouble}; the whole log is {log}")


def say(text: str) -> None:
    print(f"setup: {text}", flush=True)


if __name__ == "__main__":
    main()
