"""The robot: joints, the kinematic tree, its kinematics, and synthetic trees. Knows nothing of files."""
