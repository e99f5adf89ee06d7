"""A real MIT mini cheetah that trots on asphalt: what the torques of its legs tell of the trunk that they carry.

Its log has joints, their torques, and the attitude and rates of the trunk; neither accelerations nor contacts. So which
feet stand is what the forces say that its preset estimates, and the robot is weighed as if it did not accelerate: a
trot does, but not on average: what moves the base is zero to some deviations, of a trot, and torques of legs in the air
count nothing. Samples are those on one of the two pairs of feet. Nothing measures what the ground does
to these, which is eliminated: two feet can push against each other along one line without any motion.

Beforehand, exactly: which combinations of parameters any such log identifies, from the contact states together.

Held against: the mass of the trunk by its makers, and the torques of the last third.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np

import nori_dyn as nd
from benchmarks.real.finding import Figure, Finding
from nori_dyn.estimation.presets import Preset
from nori_dyn.logs.mapping.log_mapping import MappingEntry
from nori_dyn.model.kinematics import link_transforms, world_transforms
from nori_dyn.typing import Booleans, Floats

DATA = "Mini cheetah"
FEET = ("FR_foot", "FL_foot", "RR_foot", "RL_foot")
PAIRS = (("FL_foot", "RR_foot"), ("FR_foot", "RL_foot"))
STANDS = 12.0
"""Vertical force on a foot that stands, at least: an eighth of the weight [N]."""

SENSORS = {
    "name": "weighed",
    "measurements": [
        {"type": "joint_acceleration", "joints": "all", "value": 0},
        {"type": "joint_torque", "joints": "root_joint", "value": 0, "sigma": [2, 2, 2, 25, 25, 25]},
        {"type": "external_wrench", "links": {"except": [*FEET]}, "value": 0},
        {"type": "external_wrench", "links": [*FEET], "components": ["mx", "my", "mz"], "value": 0},
    ],
    "contacts": {
        foot: {
            "closed": [{"type": "joint_torque", "joints": {"match": f"{foot[:2]}_.*"}, "sigma": 1}],
            "open": [{"type": "external_wrench", "links": foot, "components": ["fx", "fy", "fz"], "value": 0}],
        }
        for foot in FEET
    },
}
TRUNK = ("m:base_link", "mc:base_link.*")


def run(data: Path) -> list[Finding | Figure]:
    """What came of the data set."""
    folder = data / "real" / "mini_cheetah"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nd.errors.NoriWarning)
        preset = nd.preset("mini_cheetah", folder / "model.urdf")
        tree = preset.tree
    sensors = nd.SensorSet.from_dict(SENSORS)
    states = [nd.System(tree, sensors.in_contact(*pair)) for pair in PAIRS]
    every = nd.identifiability(states, ["inertias"])
    trunk = nd.identifiability(states, TRUNK)
    stands, weight = contacts(tree, folder / "asphalt.npz", preset)
    with tempfile.TemporaryDirectory() as temporary:
        log = told(folder / "asphalt.npz", stands, Path(temporary), preset)
        found = nd.identify(log, tree, TRUNK, sensors=sensors)
    mass, off = found.each["m:base_link"], found.deviations["m:base_link"]
    on_pairs = [float(np.mean((stands == [foot in pair for foot in FEET]).all(axis=1))) for pair in PAIRS]
    return [
        Figure(DATA, "beforehand: combinations of its 130 inertial parameters that such logs identify", every.rank),
        Figure(DATA, "beforehand: of the four of weight and centre of its trunk", trunk.rank),
        *(
            Figure(DATA, f"share of the time on {' and '.join(pair)} alone", share)
            for pair, share in zip(PAIRS, on_pairs, strict=True)
        ),
        Figure(DATA, "mean vertical force on all feet", weight, "N", 9.81 * float(tree.I[:, 5, 5].sum())),
        Figure(DATA, "mass of the trunk, its legs as in the URDF", mass, "kg", 3.3, off),
        *(
            Figure(
                DATA,
                f"first moment of the trunk, {axis}",
                found.each[f"mc:base_link.{axis}"],
                "kg m",
                deviation=found.deviations[f"mc:base_link.{axis}"],
            )
            for axis in "xyz"
        ),
        held_out(found),
    ]


def contacts(tree: nd.KinematicTree, path: Path, preset: Preset) -> tuple[Booleans, float]:
    """Whether each foot stands at each sample (n, 4), and the mean vertical force on all of them [N]."""
    found = nd.estimate(path, preset, accept=True)
    X = world_transforms(tree, link_transforms(tree, found.samples.q.T))
    up: list[Floats] = []
    for foot in FEET:
        E = X[tree.frame(foot).link].E
        up.append(np.einsum("jn,nj->n", E[:, 2], found[f"fx:{foot}"][:, 3:]))
    return np.array(up).T > STANDS, float(np.sum(up, axis=0).mean())


def told(path: Path, stands: Booleans, folder: Path, preset: Preset) -> nd.results.Log:
    """The log with its contacts, of the samples on one of the two pairs of feet."""
    arrays = np.load(path)
    on_pair = np.any([(stands == [foot in pair for foot in FEET]).all(axis=1) for pair in PAIRS], axis=0)
    columns = {name: arrays[name][on_pair] for name in arrays.files if arrays[name].ndim}
    t = float(arrays["dt"]) * np.flatnonzero(on_pair)
    np.savez(folder / "pairs.npz", t=t, contact=stands[on_pair].astype(float), **columns)
    vendor = preset.data.logs["morphosymm"]
    closed = [MappingEntry(of=f"contact:{foot}", source=f"contact[{k}]") for k, foot in enumerate(FEET)]
    return nd.read_log(folder / "pairs.npz", vendor.model_copy(update={"columns": [*vendor.columns, *closed]}))


def held_out(found: nd.results.Identification) -> Finding:
    """How far the torques of the last third are from what was found on the others."""
    fits = [fit for fit in found.fits if fit.unit == "N m"]
    names = tuple(fit.name.removeprefix("tau:").removesuffix("_joint") for fit in fits)
    nan = float("nan")
    return Finding(
        DATA,
        "torques of the last third, the trunk identified on the others",
        "the robot's own torques, at the best forces on its feet",
        names,
        ("N m",) * len(fits),
        tuple(nan if fit.held_out is None else fit.held_out for fit in fits),
        (nan,) * len(fits),
        tuple(fit.spread for fit in fits),
        tuple(fit.correlation for fit in fits),
    )
