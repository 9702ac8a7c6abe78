"""The rclpy code of the bridge: the only place where asyncio and rclpy meet."""
