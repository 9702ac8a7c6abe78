"""The robot that both sides of the action benchmark talk to: goals succeed at once."""

import rclpy
from control_msgs.action import FollowJointTrajectory
from rclpy.action import ActionServer, CancelResponse
from rclpy.node import Node
from sensor_msgs.msg import JointState


class Server(Node):
    """A gimbal controller: joint states at 100 Hz, a trajectory action."""

    def __init__(self) -> None:
        super().__init__("bench_gimbal")
        self.positions = [2.356, 2.356]
        self.names = ["gimbal_pan", "gimbal_tilt"]
        self.states = self.create_publisher(JointState, "joint_states", 10)
        self.create_timer(0.01, self.publish)
        ActionServer(
            self,
            FollowJointTrajectory,
            "gimbal_controller/follow_joint_trajectory",
            execute_callback=self.execute,
            cancel_callback=lambda goal: CancelResponse.ACCEPT,
            result_timeout=0.05,  # a long list of ended goals would slow the plain client down
        )

    def publish(self) -> None:
        message = JointState(name=self.names, position=self.positions)
        message.header.stamp = self.get_clock().now().to_msg()
        self.states.publish(message)

    def execute(self, goal) -> FollowJointTrajectory.Result:
        self.positions = list(goal.request.trajectory.points[-1].positions)
        goal.succeed()
        return FollowJointTrajectory.Result()


def main() -> None:
    rclpy.init()
    rclpy.spin(Server())


if __name__ == "__main__":
    main()
