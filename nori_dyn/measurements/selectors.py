"""Selectors of links and joints in sensor configs: all, actuated, tips, names, {except: ..}, {match: ..}, {at: ..}."""

from __future__ import annotations

import re
from typing import Annotated, TypeAlias

from pydantic import Field, field_validator

from nori_dyn.errors import SensorConfigError, UnknownSensorNameError
from nori_dyn.model.joints import Free
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.plugins import ConfigPart


class Match(ConfigPart):
    """All whose whole name matches a regular expression."""

    match: str

    @field_validator("match")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"'{pattern}' is not a regular expression: {error}") from None
        return pattern


class At(ConfigPart):
    """Links or joints by index in the order of the tree: 0 is the first, -1 the last."""

    at: int | list[int]


class Except(ConfigPart):
    """All but some names, matches or indices; `actuated` and `tips` are names too."""

    names: Annotated[list[str] | str | Match | At, Field(alias="except")]


WORDS = ("all", "actuated", "tips")
"""What means several, and is no name where it stands alone."""

Selector: TypeAlias = str | list[str] | Except | Match | At


def select_joints(tree: KinematicTree, selector: Selector) -> list[int]:
    """The bodies whose joints a selector names, in topological order.

    `all` includes the free joint of a floating base, `actuated` leaves it out; fixed joints that were kept are in both.
    `tips` are those that no other moves on: the last ones of arms, legs and necks.

    Raises:
        UnknownSensorNameError: a joint that the robot does not have.
        SensorConfigError: a pattern that matches nothing.
    """
    known = {name: i for i, name in enumerate(tree.joint_names)}
    return _select(tree, selector, known, "moving joint")


def select_places(tree: KinematicTree, selector: Selector) -> list[tuple[str, int]]:
    """The links or joints of a selector, as (name, body), in the order of the bodies.

    A place is a link, or a frame on one that the selector names; a pattern that matches a link does not mean
    the frames on it as well. A frame that is left out leaves out its link.

    Raises:
        UnknownSensorNameError: a link that the robot does not have, or that is part of the world.
        SensorConfigError: a pattern that matches nothing.
    """
    known = {name: frame.link for name, frame in tree.frames.items() if not frame.on_world}
    known |= {name: i for i, name in enumerate(tree.names)}
    bodies = _select(tree, selector, known, "moving link")
    if isinstance(selector, list):
        named = list(dict.fromkeys(selector))
    elif isinstance(selector, str):
        named = [selector]
    elif isinstance(selector, Match):
        matched = [name for name in known if re.fullmatch(selector.match, name)]
        links = {tree.names[known[name]] for name in matched}.intersection(matched)
        named = [name for name in matched if name in links or tree.names[known[name]] not in links]
    else:
        named = []
    places = [(name, known[name]) for name in named if name in known]
    return sorted(places, key=lambda place: place[1]) or [(tree.names[i], i) for i in bodies]


def _select(tree: KinematicTree, selector: Selector, known: dict[str, int], what: str) -> list[int]:
    everything = range(tree.n_links)
    if isinstance(selector, Match):
        bodies = {i for name, i in known.items() if re.fullmatch(selector.match, name)}
        if not bodies:
            raise SensorConfigError(f"no {what} of robot '{tree.name}' matches the pattern '{selector.match}'.")
        return sorted(bodies)
    if isinstance(selector, At):
        places = [selector.at] if isinstance(selector.at, int) else selector.at
        missing = [k for k in places if not -tree.n_links <= k < tree.n_links]
        if missing:
            raise SensorConfigError(
                f"robot '{tree.name}' has no {what} at {missing[0]}: it has {tree.n_links}, from 0 to "
                f"{tree.n_links - 1}, or from -1 back to {-tree.n_links}."
            )
        return sorted({k % tree.n_links for k in places})
    if isinstance(selector, Except):
        left_out = set(_select(tree, selector.names, known, what))
        return [i for i in everything if i not in left_out]
    if selector == "all":
        return list(everything)
    if selector == "actuated":
        return [i for i in everything if not isinstance(tree.joints[i], Free)]
    if selector == "tips":
        return [i for i in everything if i not in tree.parents]
    names = [selector] if isinstance(selector, str) else selector
    for name in names:
        if name not in known:
            raise UnknownSensorNameError(what, name, known, f"robot '{tree.name}'")
    return sorted({known[name] for name in names})
