"""A controller whose goals never end by themselves; says when one began and when it was cancelled.

Stamps are of the monotonic clock, which all processes of a machine share.
"""

import time

import rclpy
from control_msgs.action import FollowJointTrajectory
from rclpy.action import ActionServer, CancelResponse
from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64


class Server(Node):
    """A gimbal controller that only a cancel can end."""

    def __init__(self) -> None:
        super().__init__("bench_gimbal")
        self.began = self.create_publisher(Float64, "bench/began_at", 10)
        self.cancelled = self.create_publisher(Float64, "bench/cancelled_at", 10)
        self.states = self.create_publisher(JointState, "joint_states", 10)
        self.create_timer(0.05, self.publish)
        self.end = Future()
        ActionServer(
            self,
            FollowJointTrajectory,
            "gimbal_controller/follow_joint_trajectory",
            execute_callback=self.execute,
            cancel_callback=self.cancel,
            result_timeout=1,
        )

    def publish(self) -> None:
        message = JointState(name=["gimbal_pan", "gimbal_tilt"], position=[2.356, 2.356])
        message.header.stamp = self.get_clock().now().to_msg()
        self.states.publish(message)

    def cancel(self, goal) -> CancelResponse:
        self.cancelled.publish(Float64(data=time.monotonic()))
        self.end.set_result(None)
        return CancelResponse.ACCEPT

    async def execute(self, goal) -> FollowJointTrajectory.Result:
        self.end = Future()
        self.began.publish(Float64(data=time.monotonic()))
        await self.end
        while not goal.is_cancel_requested:
            again = Future()
            self.executor.create_task(again.set_result, None)
            await again
        goal.canceled()
        return FollowJointTrajectory.Result()


def main() -> None:
    rclpy.init()
    rclpy.spin(Server())


if __name__ == "__main__":
    main()
