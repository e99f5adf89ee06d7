"""The components of an MJCF model: rotors, friction, springs, tendons, and what its equality constraints hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from nori_dyn.components import Coupling, Friction, Loop, Rotor, Spring, Tendon
from nori_dyn.components.base import Component
from nori_dyn.components.building import JointTermData, component, joint_components
from nori_dyn.descriptions.mjcf_model import MjcfPlaces, component_name
from nori_dyn.model.tree import Frame
from nori_dyn.typing import Floats

SMOOTH = (
    "joint friction changes its sign smoothly, over {width:g} rad/s or m/s; MuJoCo's solver has a smoothing of its own"
)


@dataclass(frozen=True, slots=True)
class MjcfComponents:
    """Components of a model, beside rigid bodies on joints.

    Attributes:
        components: what is stated exactly.
        frames: the frames that these name, and that the tree does not have yet.
        notes: what was done, for people.
        ignored: what the equations are without, for people.
    """

    components: tuple[Component, ...]
    frames: Mapping[str, Frame]
    notes: tuple[str, ...]
    ignored: tuple[str, ...]


def mjcf_components(places: MjcfPlaces) -> MjcfComponents:
    """Components of a model on the tree of its bare rigid bodies."""
    reader = _ComponentReader(places)
    found = [*joint_components(reader.joint_terms()), *reader.tendons()]
    equalities = EqualityReader(places)
    found += equalities.components()
    notes = [*reader.notes(), *equalities.notes]
    ignored = (*reader.ignored, *equalities.ignored, *beyond_components(places.model))
    return MjcfComponents(tuple(_distinct(found)), places.frames, tuple(notes), ignored)


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


@dataclass
class _ComponentReader:
    """Turns what acts on joints, and tendons, into components.

    Attributes:
        places: where things of the model are on the tree.
        ignored: what no component says.
        still: joints that are locked, and had something.
        is_smooth: whether there is friction of Coulomb's.
    """

    places: MjcfPlaces
    ignored: list[str] = field(default_factory=list)
    still: list[str] = field(default_factory=list)
    is_smooth: bool = False

    def joint_terms(self) -> Iterator[JointTermData]:
        """Yield rotors, friction and springs of joints that move."""
        for number in range(self.places.model.njnt):
            name = self.places.name("joint", number)
            terms = [(name, kind, numbers) for kind, numbers in self._terms(number, name) if any(numbers.values())]
            if terms and name not in self.places.moving:
                self.still.append(name)
                continue
            self.is_smooth |= any(numbers.get("coulomb") for _, _, numbers in terms)
            yield from terms

    def _terms(self, number: int, name: str) -> Iterator[tuple[type[Component], dict[str, float]]]:
        """Yield the type and the numbers of what acts on a joint."""
        m, types, places = self.places.model, self.places.mujoco.mjtJoint, self.places
        is_free = m.jnt_type[number] == int(types.mjJNT_FREE)
        is_scalar = m.jnt_type[number] in (int(types.mjJNT_HINGE), int(types.mjJNT_SLIDE))
        at = m.jnt_dofadr[number]  # all freedoms of a joint have the same numbers
        if m.dof_armature[at] and is_free:  # where the joint moves along, it is of an acceleration in world axes
            self.ignored.append(f"armature of the free joint '{name}'")
        else:
            yield Rotor, {"inertia": m.dof_armature[at]}
        viscous = 0.0 if places.is_disabled("damper", "passive") else m.dof_damping[at]
        coulomb = 0.0 if places.is_disabled("frictionloss", "constraint") else m.dof_frictionloss[at]
        if coulomb and is_free:
            self.ignored.append(f"friction of the free joint '{name}'")
            coulomb = 0.0
        yield Friction, {"viscous": viscous, "coulomb": coulomb}
        stiffness = 0.0 if places.is_disabled("spring", "passive") else m.jnt_stiffness[number]
        if stiffness and is_scalar:
            yield Spring, {"stiffness": stiffness, "reference": m.qpos_spring[m.jnt_qposadr[number]]}
        elif stiffness:
            self.ignored.append(f"stiffness of the {'free' if is_free else 'ball'} joint '{name}'")

    def tendons(self) -> Iterator[Tendon]:
        """Yield the tendons, passive, that are sums of joints or straight lines."""
        m = self.places.model
        for number in range(m.ntendon):
            name = self.places.name("tendon", number)
            runs = self.places.tendon(number)
            if isinstance(runs, str):
                self.ignored.append(f"tendon '{name}' ({runs})")
                continue
            more = [f"{what} of tendon '{name}'" for what in ("armature", "frictionloss") if self._has(what, number)]
            self.ignored += more
            if not runs.moves:
                self.still.append(name)
                continue
            stiffness, damping = float(m.tendon_stiffness[number]), float(m.tendon_damping[number])
            stiffness = 0.0 if self.places.is_disabled("spring", "passive") else stiffness
            damping = 0.0 if self.places.is_disabled("damper", "passive") else damping
            slack, taut = m.tendon_lengthspring[number]
            if stiffness and slack != taut:
                self.ignored.append(f"stiffness of tendon '{name}' (it is slack over a range)")
                stiffness = 0.0
            numbers = {"stiffness": stiffness, "damping": damping, "rest": slack - runs.still if stiffness else 0.0}
            named = {"name": component_name(name), "role": "passive"}
            yield component(Tendon, {**named, **runs.fields, **numbers})

    def _has(self, what: str, number: int) -> bool:
        return bool(getattr(self.places.model, f"tendon_{what}", np.zeros(number + 1))[number])

    def notes(self) -> Iterator[str]:
        """Yield what was done, for people."""
        if self.is_smooth:
            yield SMOOTH.format(width=Friction.model_fields["width"].default)
        if self.still:
            yield f"locked joints, whose components are left out: {', '.join(self.still)}"


def _distinct(components: Sequence[Component]) -> Iterator[Component]:
    """Yield components, those with a name that another one has under a longer one."""
    taken: set[str] = set()
    for each in components:
        name = each.name
        while name and name in taken:
            name = f"{each.type}/{name}"
        taken.add(name)
        yield each if name == each.name else each.model_copy(update={"name": name})


POLYNOMIAL = slice(0, 5)
"""Where `polycoef` is in the numbers of an equality constraint."""

TORQUE_SCALE = 10
"""Where `torquescale` of a weld is."""


@dataclass
class EqualityReader:
    """Turns equality constraints into components.

    Attributes:
        places: where things of the model are on the tree.
        notes: what was left out for good reason, for people.
        ignored: what no component says.
    """

    places: MjcfPlaces
    notes: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)

    def components(self) -> Iterator[Component]:
        """Yield what holds."""
        m, types = self.places.model, self.places.mujoco.mjtEq
        if self.places.is_disabled("equality", "constraint"):
            return
        readers = {
            int(types.mjEQ_CONNECT): self._connect,
            int(types.mjEQ_WELD): self._weld,
            int(types.mjEQ_JOINT): self._joint,
            int(types.mjEQ_TENDON): self._tendon,
        }
        for number in range(m.neq):
            name = self.places.name("equality", number)
            read = readers.get(int(m.eq_type[number]))
            if not m.eq_active0[number]:
                self.notes.append(f"equality constraint '{name}' is not active at first, and left out")
            elif read is None:
                self.ignored.append(f"equality constraint '{name}' of flexible bodies")
            else:
                found = read(number, name)
                if isinstance(found, str):
                    self.notes.append(f"equality constraint '{name}' left out: {found}")
                elif found is not None:
                    yield found

    def _connect(self, number: int, name: str) -> Loop | str:
        numbers = self.places.model.eq_data[number]
        return self._loop(number, name, "point", (numbers[:3], None), (numbers[3:6], None))

    def _weld(self, number: int, name: str) -> Loop | str:
        numbers = self.places.model.eq_data[number]
        held: Literal["point", "pose"] = "pose" if numbers[TORQUE_SCALE] else "point"
        return self._loop(number, name, held, (numbers[3:6], numbers[6:10]), (numbers[:3], None))

    def _loop(self, number: int, name: str, held: str, *on_bodies: tuple[Floats, Floats | None]) -> Loop | str:
        """Loop between two sites, or two poses on bodies, each a position and a quaternion."""
        m, places = self.places.model, self.places
        ends = (int(m.eq_obj1id[number]), int(m.eq_obj2id[number]))
        are_sites = m.eq_objtype[number] == int(places.mujoco.mjtObj.mjOBJ_SITE)
        if any(places.is_mocap(int(m.site_bodyid[end]) if are_sites else end) for end in ends):
            return "one end is on a mocap body, which is moved from outside"
        if are_sites:
            own = {name: places.frame(name) for name in map(places.site, ends)}
        else:
            frames = (
                places.on_body(end, np.array(r), quaternion)
                for end, (r, quaternion) in zip(ends, on_bodies, strict=True)
            )
            own = {f"{name}/{places.name('body', end)}": frame for end, frame in zip(ends, frames, strict=True)}
        first, second = own.values()
        if first.link == second.link:
            return "both ends are on one link"
        places.frames.update({} if are_sites else own)
        ordered = [*own][::-1] if first.on_world else [*own]
        return Loop.model_validate({"name": component_name(name), "frames": ordered, "constrains": held})

    def _joint(self, number: int, name: str) -> Coupling | str:
        m, places = self.places.model, self.places
        follower, other = int(m.eq_obj1id[number]), int(m.eq_obj2id[number])
        joint = places.name("joint", follower)
        if joint not in places.moving:
            return f"joint '{joint}' is locked"
        curve = np.polynomial.Polynomial(m.eq_data[number, POLYNOMIAL])
        rest = self._reference(follower)
        if other < 0:
            return Coupling(name=component_name(name), joint=joint, of={}, offset=rest + curve.coef[0])
        curve = rest + curve(np.polynomial.Polynomial([-self._reference(other), 1.0]))
        leader = places.name("joint", other)
        if leader not in places.moving:
            offset = float(curve(places.locked.get(leader, 0.0)))
            return Coupling(name=component_name(name), joint=joint, of={}, offset=offset)
        offset, *factors = np.trim_zeros(curve.coef, "b").tolist() or [0.0]
        of = {leader: factors[0] if len(factors) == 1 else factors} if factors else {}
        return Coupling(name=component_name(name), joint=joint, of=of, offset=offset)

    def _reference(self, joint: int) -> float:
        """Position of a joint at qpos0, from which its constraint counts."""
        m = self.places.model
        return float(m.qpos0[m.jnt_qposadr[joint]])

    def _tendon(self, number: int, name: str) -> Tendon | str | None:
        """A tendon that is held: alone, or as a linear sum with another one."""
        m, places = self.places.model, self.places
        first, second = int(m.eq_obj1id[number]), int(m.eq_obj2id[number])
        constant, slope, *bends = m.eq_data[number, POLYNOMIAL].tolist()
        rest = float(m.tendon_length0[first]) + constant
        run = places.tendon(first)
        if second >= 0:
            sums = [places.factors(tendon) for tendon in (first, second)]
            if any(bends) or None in sums:
                self.ignored.append(f"equality constraint '{name}' of two tendons (no linear sum of joints)")
                return None
            rest -= slope * float(m.tendon_length0[second])
            factors = Counter(sums[0])
            factors.subtract({joint: slope * factor for joint, factor in (sums[1] or {}).items()})
            run = places.sum_of_joints(factors)
        if isinstance(run, str):
            self.ignored.append(f"equality constraint '{name}' of a tendon ({run})")
            return None
        if not run.moves:
            return "what it holds is locked"
        return Tendon.model_validate(
            {"name": component_name(name), "role": "held", "rest": rest - run.still, **run.fields}
        )
