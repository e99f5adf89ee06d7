"""Sensors of users whose rows do not fit: told of by the sensor's name, with what was expected."""

from dataclasses import dataclass

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.system.builder import System
from nori_dyn.system.variables import VariableKey

TREE = nd.autotree(3)
QDD, A = VariableKey("qdd", 1), VariableKey("a", 2)


@dataclass(frozen=True)
class Gauge:
    """A sensor that gives what it is told to."""

    block: object = None
    key: object = A
    terms: object = None
    sigma: tuple[float, ...] | None = None
    name: str = "gauge"
    source: str = "a test"
    group: str = "strain"
    components: tuple[str, ...] = ("x", "y")
    is_measured: bool = True

    def blocks(self, at):
        return {self.key: np.zeros((2, 6)) if self.block is None else self.block}

    def bias(self, at, y):
        return -y if self.terms is None else self.terms


@dataclass(frozen=True)
class Sensors:
    """The shipped sensors, and a gauge."""

    gauge: Gauge
    name: str = "mine"
    fingerprint: str = "mine"

    def equations(self, tree):
        return [*nd.sensors("inverse_dynamics").equations(tree), self.gauge]


WRONG = {
    "rows": (Gauge(np.zeros((3, 6))), r"its block for a of body 2 has the shape \(3, 6\), expected .* \(2, 6\)"),
    "columns": (Gauge(np.zeros((2, 1))), r"has the shape \(2, 1\), expected .* \(2, 6\)"),
    "turned": (Gauge(np.zeros((6, 2))), r"has the shape \(6, 2\), expected .* \(2, 6\)"),
    "a row": (Gauge(np.zeros(6)), r"has the shape \(6,\), expected .* \(2, 6\)"),
    "one freedom": (Gauge(np.zeros((2, 6)), QDD), r"has the shape \(2, 6\), expected .* \(2, 1\)"),
    "a list": (Gauge([[0.0] * 6] * 2), r"is a list, expected an array of the shape \(2, 6\)"),
    "no body": (
        Gauge(key=VariableKey("a", 7)),
        r"it has a block for VariableKey\(kind='a', body=7, component=''\), expected a",
    ),
    "no key": (Gauge(key="a:link2"), r"it has a block for 'a:link2', expected a VariableKey of a kind \(a, f, tau"),
    "bias": (Gauge(terms=np.zeros(3)), r"its bias has the shape \(3,\), expected .* \(2,\)"),
    "a number": (Gauge(terms=0.0), r"its bias is a float, expected .* \(2,\)"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_told_by_name(case):
    gauge, message = WRONG[case]
    system = System(TREE, Sensors(gauge))
    at = np.zeros(3)
    with pytest.raises(nd.errors.SensorConfigError, match=rf"sensors 'mine', 'gauge' \(strain\): .*{message}"):
        _ = system.D(at), system.b(at, at, np.zeros(system.ny))
    with pytest.raises(nd.errors.SensorConfigError, match=message):
        nd.plan(system, cache=False)


def test_what_fits_is_taken_with_a_sigma_for_each_row():
    with pytest.raises(nd.errors.SensorConfigError, match=r"'gauge' \(strain\): its sigma has 3 numbers, expected 2"):
        System(TREE, Sensors(Gauge(sigma=(1.0, 2.0, 3.0))))
    system = nd.System(TREE, Sensors(Gauge(sigma=(1.0, 2.0))))
    assert system.shape == system.D(np.zeros(3)).shape == (62, 60)
