"""What every node of this package shares: life cycle, parameters, diagnostics."""

import sys


def _without_generator() -> None:
    """Imports rclpy's type support loader without the code generator that lies beside it.

    A node never generates code, but the loader imports the generator where it is installed: a
    parser and a template engine, 8 MB and 0.1 s for each node. It treats it as optional, so that
    it is enough not to find it. Whoever imports the generator later still gets it.
    """
    generator = "rosidl_generator_py.generate_py_impl"
    if generator in sys.modules:
        return
    sys.modules[generator] = None  # type: ignore[assignment]
    try:
        import rosidl_generator_py  # noqa: F401
    except ImportError:
        pass
    finally:
        del sys.modules[generator]


_without_generator()
