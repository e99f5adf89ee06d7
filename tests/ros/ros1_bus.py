"""Run by a Python that has ROS 1: publishes messages over its live bus, and prints as JSON the bytes that came.

It begins a master, a node that publishes, and, in the same node, a subscription that takes messages as they are sent.
"""

import json
import sys
import threading

import rosgraph
import rosmaster.master
import rospy
from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Header

master = rosmaster.master.Master(int(sys.argv[1]))
master.start()
rospy.init_node("bus", anonymous=True, disable_signals=True, disable_rosout=True)
assert rosgraph.is_master_online()
header = Header(stamp=rospy.Time(12, 500_000_000), frame_id="tool")
joints = JointState(header=header, name=["hip", "knee"], position=[0.25, -0.5], velocity=[1.0, 2.0], effort=[3.0, 4.0])
load = WrenchStamped(header=header)
load.wrench.force.z, load.wrench.torque.x = 7.0, 0.125
motion = Imu(header=header)
motion.angular_velocity.y, motion.linear_acceleration.z = 0.75, 9.81
found = {}
for topic, message in (("/joint_states", joints), ("/ft", load), ("/imu", motion)):
    came = threading.Event()

    def take(raw, topic=topic, came=came):
        found[topic] = {"kind": raw._connection_header["type"], "bytes": raw._buff.hex()}
        came.set()

    rospy.Subscriber(topic, rospy.AnyMsg, take)
    publisher = rospy.Publisher(topic, type(message), queue_size=10, latch=True)
    publisher.publish(message)
    assert came.wait(60)
print(json.dumps(found), flush=True)
rospy.signal_shutdown("done")
master.stop()
