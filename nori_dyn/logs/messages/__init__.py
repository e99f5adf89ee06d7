"""Messages of ROS as columns of numbers, and estimates as messages."""
