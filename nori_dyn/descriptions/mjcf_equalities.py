"""The equality constraints of an MJCF model: loops, couplings, and tendons that are held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from nori_dyn.components import Coupling, Loop, Tendon
from nori_dyn.components.base import Component
from nori_dyn.descriptions.mjcf_places import MjcfPlaces, component_name
from nori_dyn.typing import Floats

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
        """Return the loop between two sites, or two poses on bodies, each a position and a quaternion."""
        m, places = self.places.model, self.places
        ends = (int(m.eq_obj1id[number]), int(m.eq_obj2id[number]))
        are_sites = m.eq_objtype[number] == int(places.mujoco.mjtObj.mjOBJ_SITE)
        if any(places.is_led(int(m.site_bodyid[end]) if are_sites else end) for end in ends):
            return "it is to a mocap body, which is led from outside"
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
        """Return the position of a joint at qpos0, from which its constraint counts."""
        m = self.places.model
        return float(m.qpos0[m.jnt_qposadr[joint]])

    def _tendon(self, number: int, name: str) -> Tendon | str | None:
        """Return a tendon that is held: alone, or as a linear sum with another one."""
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
