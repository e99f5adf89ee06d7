"""Plan files and the cache of plans: data only, whole or not at all, and never for another system."""

import json
import warnings
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.planning import identity, orders
from nori_dyn.planning.orderings.umfpack import has_umfpack
from nori_dyn.planning.orders import VERSION, cache_folder
from tests.covering import covering
from tests.robots import ROBOTS
from tests.systems import ACCELERATIONS, SPEED, TORQUES, UNLOADED, WRENCHES, sensor_set

pytestmark = pytest.mark.usefixtures("own_cache")

FILES = Path(__file__).parents[2] / "data" / "plans"
ANEW = " the orders in it are of an earlier version and no longer fit. It is planned anew: save it again."


def system(tree=None, sensors="inverse_dynamics"):
    return nd.System(tree or nd.autotree(2, skew=1.0), nd.sensors(sensors))


def solved(plan, seed=0):
    rng = np.random.default_rng(seed)
    tree = plan.system.tree
    state = tree.random_configuration(rng), rng.normal(size=tree.nv), rng.normal(size=plan.system.ny)
    return plan.solver("numpy").solve(*state)


def saved(tmp_path, one):
    one.save(tmp_path / "plan")
    return nd.Plan.load(tmp_path / "plan")


@covering(strength=1, sensors=["inverse_dynamics", "forward_dynamics", "hybrid_dynamics"], seed=range(3))
def test_what_is_saved_is_what_is_loaded(tmp_path, sensors, seed):
    one = nd.plan(system(nd.tools.random_tree(6, seed), sensors), cache=False)
    other = saved(tmp_path, one)
    assert other.system.fingerprint == one.system.fingerprint
    assert other.system.measurement_names == one.system.measurement_names
    assert (other.ordering, other.cost, other.tried) == (one.ordering, one.cost, one.tried)
    np.testing.assert_array_equal(other.row_permutation, one.row_permutation)
    np.testing.assert_array_equal(other.column_permutation, one.column_permutation)
    np.testing.assert_array_equal(solved(other).tau, solved(one).tau)
    assert "components" not in json.loads((tmp_path / "plan").read_text())["tree"]  # of a robot without any


def test_outputs_in_frames_and_limits_survive(tmp_path):
    tree = nd.autotree(3)
    joints = (*tree.joints[:2], type(tree.joints[0])(limits=(-1.0, np.inf)))
    frames = {"tip": type(tree.frame("link3"))(2, tree.X_tree[1])}
    one = nd.plan(system(tree.replace(joints=joints, frames=frames)), outputs=("tau", "fx:tip"), cache=False)
    other = saved(tmp_path, one)
    assert other.system.tree.joints[2].limits == (-1.0, np.inf)
    assert [output.name for output in other.outputs] == ["tau", "fx:tip"]
    np.testing.assert_array_equal(solved(other)["fx:tip"], solved(one)["fx:tip"])


def test_components_survive(tmp_path):
    parts = (
        nd.components.Rotor(joints="all", inertia=0.1, gear=2),
        nd.components.Coupling(joint="joint2", of={"joint1": 0.5}),
        nd.components.Tendon(name="bar", through=["link3", "hook"], role="passive", stiffness=4.0, damping=0.5),
    )
    hook = nd.autotree(3).frame("link1")
    tree = nd.autotree(3).replace(frames={"hook": hook}, components=parts)
    one = nd.plan(system(tree, "forward_dynamics"), cache=False, ordering="recursive")
    other = saved(tmp_path, one)
    assert other.system.tree.components == parts
    np.testing.assert_array_equal(solved(other)["coupling:joint2_joint1"], solved(one)["coupling:joint2_joint1"])
    content = json.loads((tmp_path / "plan").read_text())
    content["tree"]["components"][0]["inertia"] = -1.0
    with pytest.raises(nd.errors.PlanError, match=r"its tree is wrong at components\[0\].inertia"):
        load(tmp_path, content)


def test_planning_again_is_a_look_up_in_a_private_folder(counted):
    first, second = nd.plan(system()), nd.plan(system())
    assert len(counted) == 1
    assert cache_folder().stat().st_mode & 0o077 == 0
    np.testing.assert_array_equal(first.row_permutation, second.row_permutation)
    nd.plan(system(), cache=False)
    assert len(counted) == 2


def test_another_question_is_planned(counted):
    nd.plan(system())
    others = [
        {"outputs": ("tau",)},
        {"ordering": "recursive"},
        {"seed": 1},
        {"effort": 1},
        {"system": system(nd.autotree(2, skew=1.1))},
        {"system": system(nd.autotree(2, skew=1.0).replace(gravity=(0.0, 0.0, -1.62)))},
        {"system": system(sensors="forward_dynamics")},
    ]
    for n, other in enumerate(others, 2):
        nd.plan(**{"system": system(), **other})
        assert len(counted) == n, other


def test_an_entry_of_the_cache_holds_permutations_and_neither_model_nor_sensors(counted):
    tree, names = nd.autotree(4, skew=1.0), ("tau", "fx:link3")
    made = nd.plan(system(tree), outputs=names)
    (entry,) = cache_folder().iterdir()
    content = json.loads(entry.read_text())
    assert content["row_permutation"] == made.row_permutation.tolist()
    assert content["program_columns"] == made.program_columns.tolist()
    assert not {"tree", "sensors", "outputs"} & content.keys()
    assert "link3" not in json.dumps({key: x for key, x in content.items() if key != "candidates"})
    found = nd.plan(system(tree), outputs=names)
    assert len(counted) == 1
    assert found.content() == made.content()


def test_a_plan_of_other_code_is_no_entry(counted, monkeypatch, tmp_path):
    """Whatever changes in what a plan depends on; and nothing else does."""
    package = tmp_path / "nori_dyn"
    for name in identity.PLANNER:
        (package / name / "deep").mkdir(parents=True)
        (package / name / "deep" / "code.py").write_text("x = 1\n")
    monkeypatch.setattr(identity, "PACKAGE", package)
    monkeypatch.setattr(orders, "planner_identity", lambda: identity.code_identity.__wrapped__(identity.PLANNER))
    nd.plan(system())
    for n, name in enumerate(identity.PLANNER, 2):
        (package / name / "deep" / "code.py").write_text("x = 2\n")
        nd.plan(system())
        nd.plan(system())
        assert len(counted) == n, name
    (package / "planning" / "notes.txt").write_text("x")
    (package / "other.py").write_text("x")
    nd.plan(system())
    assert len(counted) == n


def test_a_damaged_cache_entry_is_made_anew(counted):
    nd.plan(system())
    (entry,) = cache_folder().iterdir()
    others = b'{"tree":' + b"[" * 100_000, b'{"a": ' + b"9" * 10_000 + b"}"  # once a traceback
    for n, damage in enumerate([b"", b"{", b"not json", b"\xff\xfe", b'{"format": "nori_dyn plan"}', *others], 2):
        entry.write_bytes(damage)
        assert np.isfinite(solved(nd.plan(system())).tau).all(), damage
        nd.plan(system())
        assert len(counted) == n, damage


def test_a_cache_that_cannot_be_written_costs_one_warning(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NORI_DYN_CACHE", str(tmp_path / "file"))
    with pytest.warns(nd.errors.NoriWarning, match="not cached") as caught:
        nd.plan(system())
    assert len(caught) == 1


@pytest.fixture
def content(tmp_path):
    path = tmp_path / "plan"
    nd.plan(system(), cache=False).save(path)
    return json.loads(path.read_text())


def order(content):
    """The part of a plan file that holds what was planned of its only state."""
    (state,) = content["states"]
    return state


def load(tmp_path, content):
    """Load a plan file of some content, with a checksum that fits it."""
    content.pop("checksum", None)
    content["checksum"] = orders._checksum(content)
    path = tmp_path / "changed.plan"
    path.write_text(json.dumps(content))
    return nd.Plan.load(path)


def test_a_plan_file_is_refused_in_every_wrong_state(tmp_path, content):
    whole = (tmp_path / "plan").read_text()
    for text, message in {
        whole[: len(whole) // 2]: "truncated",
        "": "not a plan file",
        "name: x": "not a plan file",
        "[1, 2]": "not a plan file",
        '{"a": 1}': "not a plan file",
        '{"tree":' + "[" * 100_000: "nested too deeply",
        whole.replace("link1", "link7"): "changed or damaged",
    }.items():
        path = tmp_path / "wrong.plan"
        path.write_text(text)
        with pytest.raises(nd.errors.PlanError, match=message) as error:
            nd.Plan.load(path)
        assert str(error.value).startswith(f"{path}: ")
    with pytest.raises(nd.errors.FileFormatError, match="no such file"):
        nd.Plan.load(tmp_path / "none.plan")
    (tmp_path / "binary").write_bytes(b"\x80\x04\x95")  # how a pickle begins
    with pytest.raises(nd.errors.FileFormatError, match="not a text file"):
        nd.Plan.load(tmp_path / "binary")


def swapped(content):
    order(content)["row_permutation"][:2] = order(content)["row_permutation"][1::-1]


FORGED = [
    (lambda c: c.update(version=VERSION + 1), f"version {VERSION + 1}; this program reads {VERSION}"),
    (lambda c: c.update(version=0), "version 0"),
    (lambda c: c.update(format="nori_dyn order"), "is not a plan file"),
    (lambda c: order(c)["row_permutation"].append(0), "not a permutation"),
    (lambda c: order(c)["program_rows"].__setitem__(0, order(c)["program_rows"][1]), "not a permutation"),
    (lambda c: order(c)["column_permutation"].__setitem__(0, order(c)["column_permutation"][1]), "not a permutation"),
    (swapped, "zero pivot"),
    (lambda c: c["tree"]["joints"][0].update(kind="telescopic"), "unknown kind 'telescopic'"),
    (lambda c: c["tree"]["joints"][0].update(parameters={"colour": 1.0}), "wrong parameters"),
    (lambda c: c["tree"]["joints"][0]["parameters"].update(axis=[0.0, 0.0, 2.0]), "unit vector"),
    (lambda c: c["tree"].update(parents=[1, -1]), "parent must come before"),
    (lambda c: c["tree"]["I"].pop(), "links"),
    (lambda c: c["tree"].update(gravity=[0.0, 0.0, -1.0]), "fingerprint"),
    (lambda c: c["tree"]["X_tree"][0].update(r=[0.0, 0.0]), "tree.X_tree.0.r"),
    (lambda c: c["tree"]["joints"][0]["parameters"].update(limits=[1.0]), "wrong parameters"),
    (lambda c: c["tree"]["joints"][0]["parameters"].update(axis=1.0), "wrong parameters"),
    (lambda c: order(c).pop("seed"), "'states.0.seed'"),
    (lambda c: order(c).update(seed=-1), "'states.0.seed'"),
    (lambda c: order(c).update(seed=-(10**30)), "'states.0.seed'"),
    (lambda c: order(c).update(extra=1), "'states.0.extra'"),
    (lambda c: c.update(extra=1), "'extra'"),
    (lambda c: order(c)["candidates"][0].update(extra=1), "'states.0.candidates.0.extra'"),
    (lambda c: order(c)["candidates"][0]["cost"].update(additions=0.5), "'states.0.candidates.0.cost.additions'"),
    (
        lambda c: order(c)["candidates"][0]["stability"].update(growth=np.inf),
        "'states.0.candidates.0.stability.growth'",
    ),
    (lambda c: c["states"].clear(), "'states'"),
    (lambda c: c["sensors"]["measurements"].append({"type": "crystal_ball"}), "unknown sensor type 'crystal_ball'"),
    (lambda c: c.update(outputs=["torques"]), "unknown output 'torques'"),
    (lambda c: order(c).update(regrouped=None), "program's permutations are not of the size of its system"),
]


def assert_forged_is_refused(tmp_path, content, changes):
    for change, message in changes:
        forged = deepcopy(content)
        change(forged)
        with pytest.raises(nd.errors.PlanError, match=message) as error:
            load(tmp_path, forged)
        assert str(error.value).startswith(f"{tmp_path / 'changed.plan'}: ")


def test_forged_plan_files_are_refused(tmp_path, content):
    assert_forged_is_refused(tmp_path, content, FORGED)


TIP = {"closed": [WRENCHES], "open": [UNLOADED]}
TOUCH = sensor_set(ACCELERATIONS, name="touch", contacts={"tip": TIP})


@pytest.mark.parametrize(("version", "fits"), [(4, False), (5, True)])
@pytest.mark.parametrize("states", ["one_state", "two_states"])
def test_files_of_earlier_versions_load_and_what_no_longer_fits_is_planned_anew_and_said_once(states, version, fits):
    """The files were written by those versions."""
    if states == "one_state":
        expected = nd.plan(system(nd.autotree(2, skew=1.0), "forward_dynamics"), ["qdd"])
    else:
        expected = nd.plan(nd.autotree(1), TOUCH, ["tau"])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        loaded = nd.Plan.load(FILES / f"{states}_{version}.plan")
    assert [str(one.message).partition(":")[2] for one in told] == [] if fits else [ANEW]
    assert loaded.states == expected.states
    for one, other in zip(loaded.states.values(), expected.states.values(), strict=True):
        np.testing.assert_array_equal(one.program_rows, other.program_rows)
        assert (one.seed, one.ordering, one.cost) == (other.seed, other.ordering, other.cost)
        assert [output.name for output in one.outputs] == [output.name for output in other.outputs]


@pytest.mark.parametrize("states", ["one_state", "two_states"])
def test_orders_of_an_earlier_version_that_lead_to_a_zero_pivot_are_planned_anew(tmp_path, states):
    content = json.loads((FILES / f"{states}_5.plan").read_text())
    of_state = content if states == "one_state" else content["states"][1]
    of_state["program_rows"].reverse()
    with pytest.warns(nd.errors.NoriWarning, match="of an earlier version and no longer fit") as told:
        loaded = load(tmp_path, content)
    assert len(told) == 1
    loaded.save(tmp_path / "again")
    assert nd.Plan.load(tmp_path / "again").content() == loaded.content()  # without a warning, which is an error
    of_state["fingerprint"] = "0"
    with pytest.raises(nd.errors.PlanError, match="fingerprint"):
        load(tmp_path, content)


@pytest.mark.parametrize("ordering", ["markowitz", "superlu", *["umfpack"] * has_umfpack()])
def test_a_plan_in_an_order_of_D_itself_is_what_is_saved_and_loaded_and_found_again(tmp_path, ordering, counted):
    of = system(nd.tools.random_tree(6, 1), "forward_dynamics")
    one, again = (nd.plan(of, ordering=ordering) for _ in range(2))
    assert len(counted) == 1
    assert again.content() == one.content()
    other = saved(tmp_path, one)
    assert (other.ordering, other.regrouped, other.tried) == (ordering, None, one.tried)
    for mine, theirs in ((one.program_rows, other.row_permutation), (one.program_columns, other.column_permutation)):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(solved(other).tau, solved(one).tau)
    assert str(other) == str(one)
    content = json.loads((tmp_path / "plan").read_text())
    order(content)["regrouped"] = False
    with pytest.raises(nd.errors.PlanError, match="program's permutations are not of the size"):
        load(tmp_path, content)


def test_a_file_that_does_not_say_whose_order_a_program_has_is_read(tmp_path, content):
    expected = nd.plan(system(), cache=False)
    for candidate in order(content)["candidates"]:
        del candidate["program_ordering"]
    loaded = load(tmp_path, content)
    assert (loaded.ordering, loaded.cost) == (expected.ordering, expected.cost)
    assert f"ordering    {loaded.ordering}, in the refined system" in str(loaded)


def test_a_plan_belongs_to_its_system(tmp_path):
    path = tmp_path / "plan"
    nd.plan(system(), cache=False).save(path)
    assert nd.Plan.load(path, system()).ordering
    for other in (system(nd.autotree(2, skew=1.1)), system(sensors="forward_dynamics")):
        with pytest.raises(nd.errors.PlanError, match="belongs to another system"):
            nd.Plan.load(path, other)


def test_a_file_that_cannot_be_written_leaves_nothing_and_an_older_one_is_replaced_whole(tmp_path):
    plan = nd.plan(system(), cache=False)
    (tmp_path / "file").write_text("older")
    for path in (tmp_path / "none" / "x.plan", tmp_path / "file" / "x.plan", tmp_path):
        with pytest.raises(nd.errors.FileFormatError, match="cannot be written"):
            plan.save(path)
    plan.save(tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert nd.Plan.load(tmp_path / "file").ordering


def test_a_file_is_verified_once(tmp_path, monkeypatch):
    """That takes as long as tracing; what has changed since is verified anew."""
    path = tmp_path / "plan"
    plan = nd.plan(system(), cache=False)
    plan.save(path)
    looked_at = []
    monkeypatch.setattr(orders, "check_pivots", looked_at.append)
    for _ in range(3):
        assert nd.Plan.load(path).ordering == plan.ordering
    assert len(looked_at) == 1
    nd.plan(system(), seed=1, cache=False).save(path)
    nd.Plan.load(path)
    assert len(looked_at) == 2


def test_sensors_of_ones_own_class_are_planned_but_not_saved(tmp_path):
    class Mine:
        name = "mine"
        fingerprint = "mine"

        def equations(self, tree):
            return nd.sensors("inverse_dynamics").equations(tree)

    plan = nd.plan(nd.System(nd.autotree(3), Mine()))
    assert np.isfinite(solved(plan).tau).all()
    with pytest.raises(nd.errors.PlanError, match="not a SensorSet"):
        plan.save(tmp_path / "plan")


def weighted_system():
    """A system with rows to spare: what is eliminated has more rows than it has unknowns."""
    soft = {**ACCELERATIONS, "sigma": 0.1}, {**TORQUES, "sigma": 0.1}, UNLOADED
    return nd.System(nd.autotree(3), sensor_set(*soft))


def test_weighted_plans_are_saved_and_found_in_the_cache_and_forged_ones_refused(tmp_path, counted):
    one = nd.plan(weighted_system())
    assert nd.plan(weighted_system()).tried == one.tried
    assert len(counted) == 1
    np.testing.assert_array_equal(solved(saved(tmp_path, one)).tau, solved(one).tau)
    for name in ("row_permutation", "column_permutation"):
        content = json.loads((tmp_path / "plan").read_text())
        order(content)[name] = [0, 1, 2]
        with pytest.raises(nd.errors.PlanError, match="not of the size of its system"):
            load(tmp_path, content)
    content = json.loads((tmp_path / "plan").read_text())
    order(content)["regrouped"] = None
    with pytest.raises(nd.errors.PlanError, match="eliminates D itself, and its system is one of least squares"):
        load(tmp_path, content)


def test_angles_in_degrees_are_doubted_once(recwarn):
    tree = nd.load_urdf(ROBOTS["ur5"])
    solver = nd.plan(nd.System(tree, "inverse_dynamics"), outputs=("tau",)).solver("numpy")
    states = np.full((8, tree.nq), 45.0), np.zeros((8, tree.nv)), np.zeros((8, tree.nv))
    with pytest.warns(nd.errors.NoriWarning, match="degrees"):
        solver.solve_batch(*states)
    for _ in range(8):
        solver.solve_batch(*states)
        solver.solve(*(each[0] for each in states))
    assert not recwarn


def test_a_tracker_is_saved_with_its_plan(tmp_path):
    memory = {"speed": SPEED | {"noise": 0.01}}
    sensors = sensor_set(ACCELERATIONS | {"sigma": 0.1}, name="touch", contacts={"tip": TIP}, memory=memory)
    plan = nd.plan(nd.autotree(1), sensors, outputs=["qdd"])
    path, hypotheses = tmp_path / "touch.plan", nd.Hypotheses(rate=5.0, reach=1)
    for options in ({"lag": 3}, {"hypotheses": hypotheses}, {}):
        made = nd.Tracker(plan, 0.002, **options, backend="numpy")
        made.step([0.0], [1.0], [0.0, *[0.0] * 6])
        made.save(path)
        found = nd.Tracker.load(path, "numpy")
        assert (found.dt, found.lag, found.recognises) == (0.002, made.lag, made.recognises)
        assert found.n_ticks == 0
        assert nd.Plan.load(path).states == plan.states
        if found.recognises:
            assert found.steps.model.options == hypotheses
    plan.save(path)
    with pytest.raises(nd.errors.PlanError, match="does not say how its plan is tracked"):
        nd.Tracker.load(path)
