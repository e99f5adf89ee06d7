"""The components of an MJCF model: rotors, friction, springs, tendons, and what its equality constraints hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from nori_dyn.algebra.spatial import Transform
from nori_dyn.components import Coupling, Friction, Loop, Rotor, Spring, Tendon
from nori_dyn.components.base import Component
from nori_dyn.components.building import JointTermData, component, joint_components
from nori_dyn.descriptions.component_files import moving_joints
from nori_dyn.descriptions.mjcf_model import MjcfModel, component_name, rotation
from nori_dyn.model.cleaning import Cleaner
from nori_dyn.model.tree import WORLD, Frame, KinematicTree
from nori_dyn.typing import Floats

SMOOTH = (
    "joint friction changes its sign smoothly, over {width:g} rad/s or m/s; MuJoCo's solver has a smoothing of its own"
)


def components_in(model: Any) -> list[str]:
    """Kinds of components that a model has, for notes."""
    present = {
        "armature": np.any(model.dof_armature),
        "joint damping": np.any(model.dof_damping),
        "joint friction": np.any(model.dof_frictionloss),
        "joint stiffness": np.any(model.jnt_stiffness),
        "equality constraints": model.neq > 0,
        "tendons": model.ntendon > 0,
    }
    return [what for what, is_there in present.items() if is_there]


def beyond_components(model: Any) -> list[str]:
    """Features of a model that no component describes, for notes."""

    def any_in(*names: str) -> bool:  # versions of MuJoCo differ in what there is
        return any(np.any(getattr(model, name, 0.0)) for name in names)

    present = {
        "gravity compensation": any_in("body_gravcomp"),
        "fluid forces": model.opt.density > 0 or model.opt.viscosity > 0,
        "nonlinear damping": any_in("dof_dampingpoly", "tendon_dampingpoly"),
        "nonlinear stiffness": any_in("jnt_stiffnesspoly", "tendon_stiffnesspoly"),
        "springs that yield": any_in("jnt_springyield", "tendon_springyield"),
        "armature of actuators": any_in("actuator_armature"),
        "damping of actuators": any_in("actuator_damping", "actuator_dampingpoly"),
        "flexible bodies": getattr(model, "nflex", 0) > 0,
    }
    return [what for what, is_there in present.items() if is_there]


POLYNOMIAL = slice(0, 5)
"""Where `polycoef` is in the numbers of an equality constraint."""

TORQUE_SCALE = 10
"""Where `torquescale` of a weld is."""


@dataclass(frozen=True, slots=True)
class TendonPath:
    """Path of a tendon.

    Attributes:
        fields: `joints`, or `through` and `divisor`, as a `Tendon` has them.
        still: the length over joints that are locked [m].
        moves: whether its length changes.
    """

    fields: Mapping[str, Any]
    still: float = 0.0
    moves: bool = True


@dataclass
class MjcfComponents:
    """Turns what a model has beside rigid bodies on joints into components, and places its elements on the tree.

    Attributes:
        mjcf: the model.
        tree: the bare rigid bodies.
        anchors: where the link frame of each body is, in its body frame (3,) [m].
        locked: positions of locked joints [rad or m].
        cleaner: removes rounding.
        frames: frames that components name, and that the tree does not have yet.
        ignored: what the equations are without, for people.
    """

    mjcf: MjcfModel
    tree: KinematicTree
    anchors: Mapping[int, Floats]
    locked: Mapping[str, float]
    cleaner: Cleaner
    frames: dict[str, Frame] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)
    _left_out: list[str] = field(default_factory=list)
    _still: list[str] = field(default_factory=list)
    _is_smooth: bool = False

    def __post_init__(self) -> None:
        self.mujoco, self.model, self.name = self.mjcf.mujoco, self.mjcf.model, self.mjcf.named

    def read(self) -> tuple[list[Component], list[str]]:
        """Read what is stated exactly, and return notes on what was done, for people."""
        found = [*joint_components(self._joint_terms()), *self._tendons(), *self._equalities()]
        self.ignored += beyond_components(self.model)
        notes = [SMOOTH.format(width=Friction.model_fields["width"].default)] if self._is_smooth else []
        if self._still:
            notes.append(f"locked joints, whose components are left out: {', '.join(self._still)}")
        return [*_distinct(found)], notes + self._left_out

    def _joint_terms(self) -> Iterator[JointTermData]:
        """Yield rotors, friction and springs of joints that move."""
        for number in range(self.model.njnt):
            name = self.name("joint", number)
            terms = [(name, kind, numbers) for kind, numbers in self._terms(number, name) if any(numbers.values())]
            if terms and name not in self.moving:
                self._still.append(name)
                continue
            self._is_smooth |= any(numbers.get("coulomb") for _, _, numbers in terms)
            yield from terms

    def _terms(self, number: int, name: str) -> Iterator[tuple[type[Component], dict[str, float]]]:
        """Yield the type and the numbers of what acts on a joint."""
        m, types = self.model, self.mujoco.mjtJoint
        is_free = m.jnt_type[number] == int(types.mjJNT_FREE)
        is_scalar = m.jnt_type[number] in (int(types.mjJNT_HINGE), int(types.mjJNT_SLIDE))
        at = m.jnt_dofadr[number]  # all freedoms of a joint have the same numbers
        if m.dof_armature[at] and is_free:  # where the joint moves along, it is of an acceleration in world axes
            self.ignored.append(f"armature of the free joint '{name}'")
        else:
            yield Rotor, {"inertia": m.dof_armature[at]}
        viscous = 0.0 if self.is_disabled("damper", "passive") else m.dof_damping[at]
        coulomb = 0.0 if self.is_disabled("frictionloss", "constraint") else m.dof_frictionloss[at]
        if coulomb and is_free:
            self.ignored.append(f"friction of the free joint '{name}'")
            coulomb = 0.0
        yield Friction, {"viscous": viscous, "coulomb": coulomb}
        stiffness = 0.0 if self.is_disabled("spring", "passive") else m.jnt_stiffness[number]
        if stiffness and is_scalar:
            yield Spring, {"stiffness": stiffness, "reference": m.qpos_spring[m.jnt_qposadr[number]]}
        elif stiffness:
            self.ignored.append(f"stiffness of the {'free' if is_free else 'ball'} joint '{name}'")

    def _tendons(self) -> Iterator[Tendon]:
        """Yield the tendons, passive, that are sums of joints or straight lines."""
        m = self.model
        for number in range(m.ntendon):
            name = self.name("tendon", number)
            runs = self.tendon(number)
            if isinstance(runs, str):
                self.ignored.append(f"tendon '{name}' ({runs})")
                continue
            more = [f"{what} of tendon '{name}'" for what in ("armature", "frictionloss") if self._has(what, number)]
            self.ignored += more
            if not runs.moves:
                self._still.append(name)
                continue
            stiffness, damping = float(m.tendon_stiffness[number]), float(m.tendon_damping[number])
            stiffness = 0.0 if self.is_disabled("spring", "passive") else stiffness
            damping = 0.0 if self.is_disabled("damper", "passive") else damping
            slack, taut = m.tendon_lengthspring[number]
            if stiffness and slack != taut:
                self.ignored.append(f"stiffness of tendon '{name}' (it is slack over a range)")
                stiffness = 0.0
            numbers = {"stiffness": stiffness, "damping": damping, "rest": slack - runs.still if stiffness else 0.0}
            named = {"name": component_name(name), "role": "passive"}
            yield component(Tendon, {**named, **runs.fields, **numbers})

    def _has(self, what: str, number: int) -> bool:
        return bool(getattr(self.model, f"tendon_{what}", np.zeros(number + 1))[number])

    def _equalities(self) -> Iterator[Component]:
        """Yield what equality constraints hold."""
        m, types = self.model, self.mujoco.mjtEq
        if self.is_disabled("equality", "constraint"):
            return
        readers = {
            int(types.mjEQ_CONNECT): self._connect,
            int(types.mjEQ_WELD): self._weld,
            int(types.mjEQ_JOINT): self._coupled,
            int(types.mjEQ_TENDON): self._held_tendon,
        }
        for number in range(m.neq):
            name = self.name("equality", number)
            read = readers.get(int(m.eq_type[number]))
            if not m.eq_active0[number]:
                self._left_out.append(f"equality constraint '{name}' is not active at first, and left out")
            elif read is None:
                self.ignored.append(f"equality constraint '{name}' of flexible bodies")
            else:
                found = read(number, name)
                if isinstance(found, str):
                    self._left_out.append(f"equality constraint '{name}' left out: {found}")
                elif found is not None:
                    yield found

    def _connect(self, number: int, name: str) -> Loop | str:
        numbers = self.model.eq_data[number]
        return self._loop(number, name, "point", (numbers[:3], None), (numbers[3:6], None))

    def _weld(self, number: int, name: str) -> Loop | str:
        numbers = self.model.eq_data[number]
        held: Literal["point", "pose"] = "pose" if numbers[TORQUE_SCALE] else "point"
        return self._loop(number, name, held, (numbers[3:6], numbers[6:10]), (numbers[:3], None))

    def _loop(self, number: int, name: str, held: str, *on_bodies: tuple[Floats, Floats | None]) -> Loop | str:
        """Loop between two sites, or two poses on bodies, each a position and a quaternion."""
        m = self.model
        ends = (int(m.eq_obj1id[number]), int(m.eq_obj2id[number]))
        are_sites = m.eq_objtype[number] == int(self.mujoco.mjtObj.mjOBJ_SITE)
        if any(self.is_mocap(int(m.site_bodyid[end]) if are_sites else end) for end in ends):
            return "one end is on a mocap body, which is moved from outside"
        if are_sites:
            own = {name: self.frame(name) for name in map(self.site, ends)}
        else:
            frames = (
                self.on_body(end, np.array(r), quaternion) for end, (r, quaternion) in zip(ends, on_bodies, strict=True)
            )
            own = {f"{name}/{self.name('body', end)}": frame for end, frame in zip(ends, frames, strict=True)}
        first, second = own.values()
        if first.link == second.link:
            return "both ends are on one link"
        self.frames.update({} if are_sites else own)
        ordered = [*own][::-1] if first.on_world else [*own]
        return Loop.model_validate({"name": component_name(name), "frames": ordered, "constrains": held})

    def _coupled(self, number: int, name: str) -> Coupling | str:
        m = self.model
        follower, other = int(m.eq_obj1id[number]), int(m.eq_obj2id[number])
        joint = self.name("joint", follower)
        if joint not in self.moving:
            return f"joint '{joint}' is locked"
        curve = np.polynomial.Polynomial(m.eq_data[number, POLYNOMIAL])
        rest = self._reference(follower)
        if other < 0:
            return Coupling(name=component_name(name), joint=joint, of={}, offset=rest + curve.coef[0])
        curve = rest + curve(np.polynomial.Polynomial([-self._reference(other), 1.0]))
        leader = self.name("joint", other)
        if leader not in self.moving:
            offset = float(curve(self.locked.get(leader, 0.0)))
            return Coupling(name=component_name(name), joint=joint, of={}, offset=offset)
        offset, *factors = np.trim_zeros(curve.coef, "b").tolist() or [0.0]
        of = {leader: factors[0] if len(factors) == 1 else factors} if factors else {}
        return Coupling(name=component_name(name), joint=joint, of=of, offset=offset)

    def _reference(self, joint: int) -> float:
        """Position of a joint at qpos0, from which its constraint counts."""
        m = self.model
        return float(m.qpos0[m.jnt_qposadr[joint]])

    def _held_tendon(self, number: int, name: str) -> Tendon | str | None:
        """A tendon that is held: alone, or as a linear sum with another one."""
        m = self.model
        first, second = int(m.eq_obj1id[number]), int(m.eq_obj2id[number])
        constant, slope, *bends = m.eq_data[number, POLYNOMIAL].tolist()
        rest = float(m.tendon_length0[first]) + constant
        run = self.tendon(first)
        if second >= 0:
            sums = [self.factors(tendon) for tendon in (first, second)]
            if any(bends) or None in sums:
                self.ignored.append(f"equality constraint '{name}' of two tendons (no linear sum of joints)")
                return None
            rest -= slope * float(m.tendon_length0[second])
            factors = Counter(sums[0])
            factors.subtract({joint: slope * factor for joint, factor in (sums[1] or {}).items()})
            run = self.sum_of_joints(factors)
        if isinstance(run, str):
            self.ignored.append(f"equality constraint '{name}' of a tendon ({run})")
            return None
        if not run.moves:
            return "what it holds is locked"
        return Tendon.model_validate(
            {"name": component_name(name), "role": "held", "rest": rest - run.still, **run.fields}
        )

    def is_disabled(self, *features: str) -> bool:
        """Whether the model disables a feature, by MuJoCo's names; versions differ in which there are."""
        flags = (getattr(self.mujoco.mjtDisableBit, f"mjDSBL_{feature.upper()}", 0) for feature in features)
        return any(self.model.opt.disableflags & int(flag) for flag in flags)

    @cached_property
    def moving(self) -> frozenset[str]:
        """The names of joints that move."""
        return moving_joints(self.tree)

    def is_mocap(self, body: int) -> bool:
        """Whether a body is one of MuJoCo's mocap bodies, which are moved from outside."""
        return bool(self.model.body_mocapid[self.model.body_rootid[body]] >= 0)

    def on_body(self, body: int, position: Floats, quaternion: Floats | None = None) -> Frame:
        """Frame at a position (3,) [m] with a quaternion (w, x, y, z), in a body's own frame."""
        R = np.eye(3) if quaternion is None else rotation(quaternion)
        E = np.ascontiguousarray(self.cleaner.rotation(R).T)
        if body in self.anchors:
            on = self.tree.frame(self.name("body", body))
            X = Transform(E, position - self.anchors[body]) @ on.X
            return Frame(on.link, Transform(X.E, self.cleaner.position(X.r)))
        data = self._at_start
        X = Transform(E, position) @ Transform(data.xmat[body].reshape(3, 3).T.copy(), data.xpos[body].copy())
        return Frame(WORLD, X)

    @cached_property
    def _at_start(self) -> Any:
        data = self.mujoco.MjData(self.model)
        self.mujoco.mj_kinematics(self.model, data)
        return data

    def site(self, number: int) -> str:
        """Name of the frame of a site, made if the site has none."""
        m = self.model
        if self.mjcf.given_name("site", number):
            name = self.mjcf.site_frame(number)
            if name in self.tree.frames or name in self.tree.names:
                return name
        name = self.name("site", number)
        self.frames[name] = self.on_body(int(m.site_bodyid[number]), np.array(m.site_pos[number]), m.site_quat[number])
        return name

    def frame(self, name: str) -> Frame:
        """A frame of the tree, or one that was made here."""
        return self.frames[name] if name in self.frames else self.tree.frame(name)

    def tendon(self, number: int) -> TendonPath | str:
        """What a tendon runs over, or why no `Tendon` describes it."""
        m, wraps = self.model, self.mujoco.mjtWrap
        factors = self.factors(number)
        if factors is not None:
            return self.sum_of_joints(factors)
        at = self._wraps(number)
        kinds = [int(m.wrap_type[k]) for k in at]
        if {int(wraps.mjWRAP_SPHERE), int(wraps.mjWRAP_CYLINDER)} & {*kinds}:
            return "it wraps around a geom"
        divisor = 1.0
        pulley = int(wraps.mjWRAP_PULLEY)
        if kinds[0] == pulley:
            divisor, at = float(m.wrap_prm[at[0]]), at[1:]
        if any(m.wrap_type[k] == pulley for k in at):
            return "it branches at a pulley"
        if any(self.is_mocap(int(m.site_bodyid[m.wrap_objid[k]])) for k in at):
            return "it runs over a mocap body"
        through = [self.site(int(m.wrap_objid[k])) for k in at]
        fields = {"through": through, **({} if divisor == 1.0 else {"divisor": divisor})}
        return TendonPath(fields, moves=len({self.frame(name).link for name in through}) > 1)

    def _wraps(self, tendon: int) -> range:
        first = int(self.model.tendon_adr[tendon])
        return range(first, first + int(self.model.tendon_num[tendon]))

    def factors(self, tendon: int) -> dict[int, float] | None:
        """Factors of the joints, by number, whose sum a tendon is; None if it is none."""
        at = self._wraps(tendon)
        if any(self.model.wrap_type[k] != int(self.mujoco.mjtWrap.mjWRAP_JOINT) for k in at):
            return None
        return {int(self.model.wrap_objid[k]): float(self.model.wrap_prm[k]) for k in at}

    def sum_of_joints(self, factors: Mapping[int, float]) -> TendonPath:
        """Weighted sum of joints by number; locked ones add a constant."""
        by_name = {self.name("joint", number): factor for number, factor in factors.items() if factor}
        joints = {name: factor for name, factor in by_name.items() if name in self.moving}
        still = sum(factor * self.locked.get(name, 0.0) for name, factor in by_name.items() if name not in joints)
        return TendonPath({"joints": joints}, still, bool(joints))


def _distinct(components: Sequence[Component]) -> Iterator[Component]:
    """Yield components, those with a name that another one has under a longer one."""
    taken: set[str] = set()
    for each in components:
        name = each.name
        while name and name in taken:
            name = f"{each.type}/{name}"
        taken.add(name)
        yield each if name == each.name else each.model_copy(update={"name": name})
