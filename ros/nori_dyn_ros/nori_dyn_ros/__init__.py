"""A node that estimates the dynamics of a robot from its topics: rclpy carries the messages, nori_dyn does the rest."""
