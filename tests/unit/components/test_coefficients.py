"""The coefficients of components on joints, in which their equations are linear, and what forces they give."""

import numpy as np
import pytest

from nori_dyn.components import Friction, Rotor, Spring
from nori_dyn.model.synthetic import random_tree
from nori_dyn.recursions.rnea import rnea
from tests.tolerances import RECURSION, ROUNDING, assert_close
from tests.trees import random_state

Q, QD = np.linspace(-2.0, 2.0, 9)[None], np.linspace(-3.0, 3.0, 9)[None]

NOTHING = dict.fromkeys(("viscous", "asymmetry", "quadratic", "coulomb", "excess", "mu"), 0.0)

CASES = [
    (Friction(joints="all", viscous=0.3, coulomb=0.7), {**NOTHING, "viscous": 0.3, "coulomb": 0.7}),
    (Friction(joints="all", static=0.7), {**NOTHING, "excess": 0.7}),
    (Friction(joints="all", coulomb=0.5, static=0.7, stribeck=0.3), {**NOTHING, "coulomb": 0.5, "excess": 0.2}),
    (Friction(joints="all", asymmetry=-0.1), {**NOTHING, "asymmetry": -0.1}),
    (Friction(joints="all", mu=0.2), {**NOTHING, "mu": 0.2}),
    (Friction(joints="all", quadratic=-0.2), {**NOTHING, "quadratic": -0.2}),
    (Rotor(joints="all", inertia=2e-5, gear=-100.0), {"rotor": 0.2}),
    (Spring(joints="all", stiffness=7.0), {"stiffness": 7.0, "preload": 0.0}),
    (Spring(joints="all", stiffness=7.0, reference=0.3, preload=0.5), {"stiffness": 7.0, "preload": 0.5 + 7.0 * 0.3}),
]


@pytest.mark.parametrize(("component", "coefficients"), CASES)
def test_coefficients_are_those_of_the_equation_and_a_copy_with_them_gives_the_same_forces(component, coefficients):
    assert component.coefficients() == pytest.approx(coefficients)
    assert set(component.COEFFICIENTS) == set(coefficients)
    tree = random_tree(3, 1, kinds=["revolute"])
    same = component.with_coefficients("all", coefficients)
    state = random_state(tree, 0)[:3]
    expected = rnea(tree.replace(components=(component,)), *state)
    assert_close(rnea(tree.replace(components=(same,)), *state), expected, RECURSION)
    joint = component.with_coefficients("joint2", {})
    found = rnea(tree.replace(components=(joint,)), *state) - rnea(tree, *state)
    assert_close(found, (expected - rnea(tree, *state)) * [0, 1, 0], RECURSION)


def test_a_spring_gives_its_preload_where_it_is_slack():
    """tau = tau_J + stiffness (q - reference) - preload."""
    spring = Spring(joints="all", stiffness=7.0, reference=0.3, preload=0.5)
    assert_close(spring.force(Q, QD), 7.0 * (Q - 0.3) - 0.5, ROUNDING)
    constant = Spring(joints="all", stiffness=0.0, preload=-2.0)
    assert_close(constant.force(Q, QD), np.full(Q.shape, 2.0), ROUNDING)
    assert Spring.model_validate(constant.to_dict()) == constant
    assert Spring(joints="all", stiffness=7.0).to_dict() == {"type": "spring", "joints": "all", "stiffness": 7.0}


def test_quadratic_friction_is_against_the_motion():
    friction = Friction(joints="all", viscous=2.0, quadratic=-0.3, coulomb=1.0, width=1e-9)
    assert_close(friction.force(Q, QD), 2.0 * QD - 0.3 * QD * np.abs(QD) + np.sign(QD), ROUNDING)
    assert Friction(joints="all", quadratic=0.5).level(QD, None) is None  # nothing holds it at rest


def test_viscous_friction_may_differ_by_direction():
    friction = Friction(joints="all", viscous=2.0, asymmetry=0.5, width=1e-9)
    assert_close(friction.force(Q, QD), np.where(QD > 0, 2.5, 1.5) * QD, ROUNDING)


def test_stribecks_curve_is_linear_in_the_coulomb_part():
    """Whatever an identification finds: above the static part as well."""
    friction = Friction(joints="all", coulomb=1.0, static=1.5, stribeck=0.4, width=0.1)
    slow = 1.0 / (1.0 + (QD / 0.4) ** 2)
    for coulomb in (1.0, 1.5, 2.0):
        found = friction.with_coefficients("all", {"coulomb": coulomb}).force(Q, QD)
        assert_close(found, (coulomb + (1.5 - coulomb) * slow) * QD / np.hypot(QD, 0.1), ROUNDING)
