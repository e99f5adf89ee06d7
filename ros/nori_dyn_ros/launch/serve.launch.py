"""`ros2 launch nori_dyn_ros serve.launch.py plan:=arm.plan mapping:=arm.yaml`."""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

ARGUMENTS = {
    "plan": (str, "", "the file of a plan, or of a plan set"),
    "mapping": (str, "", "a YAML file that ties the columns of topics to the robot"),
    "topics": (str, "", "more topics to listen to, TOPIC or TOPIC=TYPE, with blanks between them"),
    "contacts": (
        str,
        "stream",
        "of a plan set, those that are closed throughout: l_foot,r_foot, or none; or recognise",
    ),
    "lag": (int, "-1", "of a tracker, how many samples late an estimate is; -1: as its file says"),
    "differentiate": (str, "auto", "how accelerations are made of velocities: auto, or none"),
    "monitor": (bool, "false", "whether readings are judged as well"),
    "prefix": (str, "/nori_dyn", "what the topics of estimates begin with"),
    "queue": (int, "256", "messages that wait, at most"),
}


def generate_launch_description():
    """The node, with an argument a parameter."""
    arguments = [
        DeclareLaunchArgument(name, default_value=given, description=words)
        for name, (_, given, words) in ARGUMENTS.items()
    ]
    parameters = {
        name: ParameterValue(LaunchConfiguration(name), value_type=kind) for name, (kind, _, _) in ARGUMENTS.items()
    }
    node = Node(package="nori_dyn_ros", executable="serve", name="nori_dyn", output="screen", parameters=[parameters])
    return LaunchDescription([*arguments, node])
