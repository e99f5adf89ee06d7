"""Random arms that move at random, with their logs, from a seed each: what identification is attacked with.

To add a family: a function here that takes a `Draft` and says what is otherwise, named in `FAMILIES`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import nori_dyn as nd
from nori_dyn.identification.parameters import ten_of, ten_parameters
from nori_dyn.model.inertia import inertia_of_ten
from tests.unit.identification.inertias import random_body
from tests.unit.identification.simulated import drawn, lasting

Floats = np.ndarray
Log = dict[str, Floats]

DT = 0.01
"""Time between samples [s]."""


@dataclass
class Draft:
    """Logs in the making, of an arm.

    Attributes:
        rng: what it is drawn from.
        arm: the model.
        real: the arm that moves.
        truth: its parameters that are not those of the model, by name.
        wanted: parameters to look for.
        logs: for each log the arm that moves in it, and whether it carries the load.
        offset: of the torques (nv,).
        options: of `nd.identify`.
    """

    rng: np.random.Generator
    arm: nd.KinematicTree
    real: nd.KinematicTree
    truth: dict[str, float] = field(default_factory=dict)
    wanted: list[str] = field(default_factory=lambda: ["inertias"])
    logs: list[tuple[nd.KinematicTree, bool]] = field(default_factory=list)
    offset: Floats | float = 0.0
    options: dict[str, Any] = field(default_factory=dict)

    def has(self, link: str, ten: Floats) -> None:
        """Say what the ten parameters of a link, or of the load, are in truth."""
        self.truth |= dict(zip((each.name for each in ten_parameters(link)), map(float, ten), strict=True))


def inertias(_: Draft) -> None:
    """Links."""


def drives(draft: Draft) -> None:
    """Links with friction, rotors and offsets."""
    draft.wanted += ["friction", "rotors", "offsets"]
    names = draft.arm.joint_names
    viscous, coulomb, rotor, draft.offset = draft.rng.uniform(0.0, 1.0, size=(4, len(names)))
    components: list[Any] = []
    for k, name in enumerate(names):
        components += [
            nd.components.Friction(joints=[name], viscous=viscous[k], coulomb=coulomb[k], width=0.01),
            nd.components.Rotor(joints=[name], inertia=0.1 * rotor[k]),
        ]
        draft.truth |= {f"viscous:{name}": viscous[k], f"coulomb:{name}": coulomb[k], f"rotor:{name}": 0.1 * rotor[k]}
        draft.truth[f"offset:tau:{name}"] = draft.offset[k]
    draft.real = draft.real.replace(components=tuple(components))


def filtered(draft: Draft) -> None:
    """Links, behind a low-pass."""
    draft.options["cutoff"] = float(draft.rng.uniform(4.0, 10.0))


def robust(draft: Draft) -> None:
    """Links, with residuals that are far off counting less."""
    draft.options["robust"] = True


def several(draft: Draft) -> None:
    """Links, from two or three logs."""
    draft.logs = [(draft.real, False)] * int(draft.rng.integers(2, 4))


def load(draft: Draft) -> None:
    """Links, and a load on the last, from a log without it and one with it."""
    ten = random_body(draft.rng)
    I = draft.real.I.copy()
    I[-1] += inertia_of_ten(ten)
    draft.logs = [(draft.real, False), (draft.real.replace(I=I), True)]
    draft.has("load", ten)
    draft.options["load_on"] = draft.arm.names[-1]


def payload(draft: Draft) -> None:
    """The last link, which carries many times its mass, all others as in the model."""
    link = draft.arm.names[-1]
    I = draft.arm.I.copy()
    I[-1] += draft.rng.uniform(5.0, 50.0) * inertia_of_ten(random_body(draft.rng))
    draft.real = draft.arm.replace(I=I)
    draft.truth.clear()
    draft.has(link, ten_of(I[-1]))
    draft.wanted = [f"m:{link}", f"mc:{link}.*", f"I:{link}.*"]


FAMILIES: dict[str, Callable[[Draft], None]] = {
    each.__name__: each for each in (inertias, drives, filtered, robust, several, load, payload)
}


def drafted(family: str, seed: list[int]) -> Draft:
    """A draft of a family, whose inertias are drawn from what is known before."""
    rng = np.random.default_rng(seed)
    kinds = ["revolute", "revolute", "prismatic"]
    arm = nd.tools.random_tree(int(rng.integers(2, 5)), int(rng.integers(1 << 30)), kinds)
    real, truth = drawn(arm, rng)
    draft = Draft(rng, arm, real)
    for link, ten in zip(arm.names, truth.reshape(-1, 10), strict=True):
        draft.has(link, ten)
    FAMILIES[family](draft)
    draft.logs = draft.logs or [(draft.real, False)]
    return draft


def log(draft: Draft, real: nd.KinematicTree) -> Log:
    """A log of 10 to 30 s: joints move as sums of three sines, noise of first order is on their torques."""
    rng, nv = draft.rng, draft.arm.nv
    t = DT * np.arange(1000 * int(rng.integers(1, 4)))
    size, phase = 0.5 * rng.normal(size=(3, nv, 1)), rng.uniform(0, 2 * np.pi, size=(3, nv, 1))
    w = 2 * np.pi * rng.uniform(0.1, 0.8, size=(3, nv, 1))
    angle = w * t + phase
    each = size * np.sin(angle), size * w * np.cos(angle), -size * w**2 * np.sin(angle)
    q, qd, qdd = (rate.sum(axis=0).T for rate in each)
    tau = nd.rnea(real, q.T, qd.T, qdd.T).T
    alike = float(rng.choice([0.0, 0.8, 0.95, rng.uniform(0.0, 0.95)]))
    noise = lasting(rng, len(t), nv, alike) * rng.uniform(0.01, 0.1, size=nv) * np.maximum(tau.std(axis=0), 0.1)
    return {"t": t, "q": q, "qd": qd, "qdd": qdd, "tau": tau + draft.offset + noise}
