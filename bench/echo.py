"""The floor: a plain rclpy node that publishes each string that it gets."""

import rclpy
from rclpy.node import Node
from std_msgs.msg import String

from bench.common import RELIABLE


def main() -> None:
    rclpy.init()
    node = Node("echo")
    publisher = node.create_publisher(String, "echo/out", RELIABLE)
    node.create_subscription(String, "echo/in", publisher.publish, RELIABLE)
    rclpy.spin(node)


if __name__ == "__main__":
    main()
