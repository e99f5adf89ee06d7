"""What was estimated from a log, beside what the log holds."""

from dataclasses import replace

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import InputError
from nori_dyn.filtering.base_estimate import BaseEstimate
from nori_dyn.filtering.history import ContactHistory
from nori_dyn.logs.mapping.log_mapping import MappingEntry
from nori_dyn.logs.mapping.record import ALWAYS, SampleRecord
from nori_dyn.logs.motion.differentiation import differentiator
from nori_dyn.logs.reading import LogCounts, SampleReader
from nori_dyn.system.builder import System
from tests.robots import load

N, DT = 60, 0.01
T = DT * np.arange(N)
UNKNOWN = ("estimate", "deviations", "bands", "memory", "nis", "degrees", "log_likelihood", "gaps")


def history(t: np.ndarray, contacts: ContactHistory | None = None, sure_from: int = 0) -> nd.results.History:
    """A base that moves along x at 0.5 m/s^2 and turns about z, whose attitude is known from a tick on."""
    n, zero = len(t), np.zeros(len(t))
    w, v = np.stack([zero, zero, np.cos(t)], axis=1), np.stack([0.5 * t, zero, zero], axis=1)
    rotation = np.stack([zero, zero, np.sin(np.sin(t) / 2), np.cos(np.sin(t) / 2)], axis=1)
    covariance = np.tile(1e-6 * np.eye(9), (n, 1, 1))
    covariance[:sure_from] *= 1e8
    base = BaseEstimate(rotation, np.zeros((n, 3)), v, w, np.tile([0, 0, -9.81], (n, 1)), covariance)
    return nd.results.History(t=t, contacts=contacts, base=base, is_causal=True, **dict.fromkeys(UNKNOWN))


@pytest.fixture
def solo():
    return load("solo12", "floating")


def saved(tmp_path, **more) -> nd.results.Log:
    q = 0.1 * np.sin(np.outer(T, np.arange(1, 13)))
    np.savez(tmp_path / "log.npz", t=T, angle=q, rate=np.gradient(q, T, axis=0), **more)
    mapping = [{"of": f"{kind}:{{joint}}", "from": f"{name}[{{k}}]"} for kind, name in (("q", "angle"), ("qd", "rate"))]
    return nd.read_log(tmp_path / "log.npz", {"columns": mapping})


def samples(log: nd.results.Log, tree: nd.KinematicTree, contacts: tuple[str, ...] = ()):
    sensors = nd.SensorSet.from_dict(
        {"name": "motion", "measurements": [{"type": "joint_acceleration", "joints": "all"}]}
    )
    systems = {state: System(tree, sensors) for state in [ALWAYS, contacts]}
    (found,) = SampleReader(systems, contacts, differentiation=differentiator(11)).chunks(log, LogCounts())
    return found


def test_a_base_is_read_like_any_joint_and_its_accelerations_are_made(tmp_path, solo):
    found = samples(saved(tmp_path).beside(history(T), solo), solo)
    np.testing.assert_allclose(found.t, T, atol=1e-12)
    np.testing.assert_allclose(found.qd[:, 2], np.cos(T), atol=1e-12)
    np.testing.assert_allclose(found.q[:, 7:], 0.1 * np.sin(np.outer(T, np.arange(1, 13))), atol=1e-12)
    inner = slice(6, -6)
    np.testing.assert_allclose(found.y[inner, 3], 0.5, atol=1e-6)  # the linear part of qdd, in its own axes
    np.testing.assert_allclose(found.y[inner, 2], -np.sin(T)[inner], atol=1e-3)


def test_samples_are_those_at_which_it_is_known(tmp_path, solo):
    found = samples(saved(tmp_path).beside(history(T[::2], sure_from=5), solo), solo)
    np.testing.assert_allclose(found.t, T[10::2], atol=1e-12)


def test_contacts_are_as_recognised_whatever_the_log_says(tmp_path, solo):
    states = ((), ("foot",))
    closed = T > 0.3
    contacts = ContactHistory(("foot",), states, np.stack([~closed, closed], axis=1).astype(float))
    log = saved(tmp_path, told=np.zeros(N))
    columns = [*log.mapping.columns, MappingEntry.model_validate({"of": "contact:foot", "from": "told"})]
    log = nd.read_log(log.path, log.mapping.model_copy(update={"columns": columns}))
    found = samples(log.beside(history(T, contacts), solo), solo, ("foot",))
    np.testing.assert_array_equal(found.contacts[:, 0], closed)


def test_what_tells_neither_is_refused(tmp_path, solo):
    with pytest.raises(InputError, match="neither the base nor contacts"):
        saved(tmp_path).beside(replace(history(T), base=None), solo)
    with pytest.raises(InputError, match="neither the base nor contacts"):
        saved(tmp_path).beside(history(T, sure_from=N), solo)


def test_columns_of_the_same_names_stand_for_the_logs_own(tmp_path, solo):
    np.savez(tmp_path / "log.npz", t=T, q=np.zeros((N, 19)), qd=np.zeros((N, 18)), **{"q:root_joint[0]": np.ones(N)})
    log = nd.read_log(tmp_path / "log.npz").beside(history(T), solo)
    record = SampleRecord.of({ALWAYS: System(solo, nd.sensors("inverse_dynamics"))})
    with log.opened(record.systems) as (source, binding):
        assert [each.name for each in source.streams if "q:root_joint[0]" in each.columns] == ["estimates"]
        assert binding.reference == "estimates"
