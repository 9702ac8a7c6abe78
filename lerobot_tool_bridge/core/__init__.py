"""What a tool call is and what becomes of it: plain Python, no rclpy, no numpy."""
