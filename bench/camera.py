"""A 1080p camera at 30 Hz whose pictures nobody may have to read."""

import rclpy
from rclpy.node import Node
from sensor_msgs.msg import Image


def main() -> None:
    rclpy.init()
    node = Node("bench_camera")
    publisher = node.create_publisher(Image, "camera/image_raw", 2)
    message = Image(encoding="rgb8", width=1920, height=1080, step=1920 * 3)
    message.data = bytes(message.step * message.height)

    def publish() -> None:
        message.header.stamp = node.get_clock().now().to_msg()
        publisher.publish(message)

    node.create_timer(1 / 30, publish)
    rclpy.spin(node)


if __name__ == "__main__":
    main()
