"""nori-dyn identifiability: its words, its JSON, and wrong usage."""

from tests.robots import ROBOTS

PENDULUM = ROBOTS["double_pendulum"]


def test_it_says_what_is_told(told):
    output = told("identifiability", PENDULUM)
    assert output.startswith("6 combinations of 20 parameters are told.")
    assert "What is told in combinations:" in output


def test_parameters_and_joints_that_stand_still(figures):
    assert figures("identifiability", PENDULUM, "--parameters", "inertias, rotors")["rank"] == 7
    found = figures("identifiability", PENDULUM, "--still", "joint1", "--still", "joint2")
    assert found["still"] == ["joint1", "joint2"]
    assert found["rank"] == 2  # what each joint holds up


def test_a_floating_base_has_sensors_of_its_own(figures):
    found = figures("identifiability", PENDULUM, "--base", "floating")
    assert found["sensors"] == "identification_floating"
    assert found["unknown_wrenches"]["eliminated"] == 6


def test_mistakes_are_one_line(refused):
    for options, said in (
        (("--parameters", "masses"), "error: unknown parameter 'masses' in robot"),
        (("--sensors", "inverse_dynamics"), "none says anything of the parameters"),
    ):
        assert said in refused("identifiability", PENDULUM, *options)
