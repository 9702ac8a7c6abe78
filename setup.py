"""The ament_python package, and the same package for pip."""

from pathlib import Path

from setuptools import find_packages, setup

NAME = "lerobot_tool_bridge"


def share(folder: str) -> list[tuple[str, list[str]]]:
    """Every file below a folder, as data files of the package's share folder."""
    folders: dict[str, list[str]] = {}
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            folders.setdefault(f"share/{NAME}/{path.parent}", []).append(str(path))
    return list(folders.items())


setup(
    name=NAME,
    version="0.1.0",
    description="Runtime for the tool calls of a language policy on a ROS 2 robot",
    license="Apache-2.0",
    author="lerobot_tool_bridge maintainers",
    author_email="maintainers@users.noreply.a-seed-7162ebbb.example",
    python_requires=">=3.10",
    packages=find_packages(include=[NAME, f"{NAME}.*"]),
    package_data={NAME: ["py.typed"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        *share("launch"),
        *share("config"),
        *share("examples"),
    ],
    zip_safe=False,
    install_requires=[
        "jsonschema>=4.10",
        "numpy>=1.21",
        "opencv-python-headless>=4.8,<5",
        "pyserial>=3.5",
        "PyYAML>=5.4",
    ],
    extras_require={
        "sim": ["mujoco>=3.3.3,<4"],
        "music": ["miniaudio>=1.61"],  # decodes and plays files in one small wheel
        "speech": ["hibari-tts>=0.2.1", "miniaudio>=1.61"],
        "dataset": ["pyarrow>=14"],
        "policy": ["openai>=1.50,<3"],  # the client of every OpenAI-compatible model server
        "test": [
            "canitoolcall==0.1.1",
            "jinja2",
            "pytest>=8",
            "pytest-timeout",
            "pytest-xdist",
            "rustypot",
        ],
        "lint": ["mypy>=1.11", "ruff>=0.6", "types-jsonschema", "types-PyYAML"],
    },
    entry_points={
        "console_scripts": [
            f"arm_driver = {NAME}.drivers.arm.node:main",
            f"bridge = {NAME}.ros.bridge:main",
            f"call = {NAME}.cli.call:main",
            f"camera_driver = {NAME}.drivers.camera.node:main",
            f"chat = {NAME}.cli.chat:main",
            f"check = {NAME}.cli.check:main",
            f"demo = {NAME}.cli.demo:main",
            f"gimbal_driver = {NAME}.drivers.gimbal.node:main",
            f"language_policy = {NAME}.policy.language_policy:main",
            f"record = {NAME}.cli.record:main",
            f"replay = {NAME}.cli.replay:main",
            f"scripted_policy = {NAME}.policy.scripted:main",
            f"up = {NAME}.cli.up:main",
            f"virtual_robot = {NAME}.sim.virtual_robot:main",
        ],
    },
)
