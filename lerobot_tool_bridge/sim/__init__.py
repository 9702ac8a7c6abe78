"""The virtual robot: MuJoCo physics behind emulated devices."""
