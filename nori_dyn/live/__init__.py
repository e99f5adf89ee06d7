"""Robots that run: estimates from a live stream of messages, published again.

    transport ─► inbox ─► streams ─► engine ─► publication ─► transport
                                       └─► statistics ─► report, diagnostics

A transport carries bytes of messages by topic: Zenoh here, rclpy in the ROS 2 package, a bus in memory in tests. What
the bytes mean, and which number of the robot each is, is what it is for recorded logs: `nori_dyn/logs/`.
"""
