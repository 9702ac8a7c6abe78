"""The arm driver node: joint states, trajectories and the gripper on a Feetech bus."""
