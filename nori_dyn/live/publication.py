"""Estimates and how the run goes, published: the messages are those that estimates are recorded in."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from nori_dyn.estimation.log_file import metadata_of
from nori_dyn.estimation.plan import Plan
from nori_dyn.filtering.tracked import Tracked
from nori_dyn.live.account import Account
from nori_dyn.live.engine import LiveEstimate
from nori_dyn.live.transport import Transport
from nori_dyn.logs.fields import FELL_BACK, not_estimated, remembered, schema_of, written
from nori_dyn.logs.formats.writer import SIGMA, Field
from nori_dyn.logs.messages.estimates import ABOUT, ABOUT_KIND, PREFIX, EstimateMessages, EstimateTopic
from nori_dyn.logs.messages.kinds import typestore_of
from nori_dyn.logs.messages.topic import STAMP
from nori_dyn.measurements.contacts import COLLISION, TOUCH_POINT
from nori_dyn.tables import number
from nori_dyn.typing import Floats

DIAGNOSTICS = f"{PREFIX}/diagnostics"
"""The topic that says how the run goes."""

DIAGNOSTIC_ARRAY = "diagnostic_msgs/msg/DiagnosticArray"

OK, WARN, ERROR, STALE = range(4)
"""Levels of DiagnosticStatus."""


class Publication:
    """The topics of a run.

    Attributes:
        topics: what is published, topic by topic, with the type of its messages.

    Args:
        transport: what carries messages.
        plans: the plan, or the plans of contact states.
        prefix: what the topics begin with.
        monitor: whether a monitor judges estimates. Standard deviations and the p-value of a monitor or a tracker are
            published too, and of a tracker what persists.
        recognised: the names of probabilities that are published, see `Tracked.recognised`.
    """

    def __init__(
        self,
        transport: Transport,
        plans: Plan,
        prefix: str = PREFIX,
        monitor: bool = False,
        recognised: Sequence[str] = (),
    ) -> None:
        one = plans.states.first
        self._memory = not_estimated([each.variable for each in one.system.memory], one.outputs)
        self._recognised = recognised
        is_judged, more = monitor or bool(one.system.memory), (self._memory, recognised)
        schema = schema_of(one.system, one.outputs, True, False, is_judged, metadata_of(plans), *more)
        self._schema = replace(schema, fields=tuple(each for each in schema.fields if each.name != FELL_BACK))
        persisting = [f"{before}{v.name}" for before in ("", SIGMA) for v in self._memory if len(v.components) == 1]
        alike = [*persisting, *(name for name in recognised if name.startswith(COLLISION)), *TOUCH_POINT]
        messages = EstimateMessages(replace(self._schema, fields=_together(self._schema.fields, alike)))
        own = {each.topic: each.kind for each in messages.published}
        own |= {ABOUT: ABOUT_KIND, DIAGNOSTICS: DIAGNOSTIC_ARRAY}
        named = {topic: prefix + topic.removeprefix(PREFIX) for topic in own}
        self.topics = {named[topic]: kind for topic, kind in own.items()}
        send = {topic: transport.advertise(named[topic], kind) for topic, kind in own.items()}
        self._estimates = [(_TopicEncoder(each), send[each.topic]) for each in messages.published]
        self._about, self._tell_about, self._diagnose = messages.about, send[ABOUT], send[DIAGNOSTICS]
        self._robot = self._schema.metadata["nori_dyn.robot"]
        diagnostics(Account(), Account(), self._robot)  # the first time takes longer

    def publish(self, tick: LiveEstimate) -> None:
        """Publish an estimate."""
        more = dict[str, Floats]()
        if isinstance(tick.judged, Tracked):
            more = remembered(self._memory, tick.judged)
            estimated = tick.judged.recognised
            more |= {name: np.array(estimated.get(name, np.nan)) for name in self._recognised}
        values = written(self._schema, tick.estimate, tick.judged, more)
        row = np.concatenate([np.ravel(values[each.name]) for each in self._schema.fields])
        for writer, send in self._estimates:
            send(writer.message(tick.t, row))

    def tell(self, account: Account, total: Account, waiting_for: str = "") -> None:
        """Publish how the run goes, and what the estimates are.

        Args:
            account: what was counted in the last period.
            total: in all.
            waiting_for: what is to be heard before estimates can begin; "" where they have.
        """
        self._diagnose(diagnostics(account, total, self._robot, waiting_for))
        self._tell_about(self._about)


def _together(fields: Sequence[Field], names: Collection[str]) -> tuple[Field, ...]:
    """Fields, those of some names that follow each other, of one kind, as one: "qd:j1", "qd:j2" as "qd"."""
    found: list[Field] = []

    def together(each: Field) -> str | Field:  # what a number is called together with others like it
        return (each.name.rpartition(":")[0] or each.name.rpartition(".")[0]) if each.name in names else each

    for key, group in groupby(fields, together):
        own = list(group)
        if len(own) == 1 or not isinstance(key, str):
            found += own
            continue
        labels, units, owners = (
            tuple(x for each in own for x in getattr(each, part)) for part in ("labels", "units", "owners")
        )
        found.append(Field(key, (len(labels),), labels, units, own[0].kind, owners))
    return tuple(found)


class _TopicEncoder:
    """Writes the messages of one topic: all but their numbers is always the same."""

    def __init__(self, published: EstimateTopic) -> None:
        layout, paths = published.layout, (*published.paths, *published.variances)
        self._data, self._numbers = bytearray(layout.data), published.numbers
        self._table = np.frombuffer(self._data, np.uint8)
        ((self._dtype, _, self._bytes),) = layout.groups(paths)
        self._stamps = [np.ndarray(1, dtype, self._data, int(own[0, 0])) for dtype, _, own in layout.groups((STAMP,))]

    def message(self, t: float, row: Floats) -> bytes:
        """A message of estimates at a time [s]."""
        values = self._numbers(row).astype(self._dtype)
        self._table[self._bytes] = values.view(np.uint8).reshape(self._bytes.shape)
        for stamp in self._stamps:
            seconds, nanoseconds = divmod(round(t * 1e9), 10**9)
            stamp[0] = min(max(seconds, -(2**31)), 2**31 - 1), nanoseconds
        return bytes(self._data)


def diagnostics(account: Account, total: Account, robot: str, waiting_for: str = "") -> bytes:
    """A message in CDR on a period of a live run.

    Args:
        account: what was counted in it.
        total: in all.
        robot: the robot.
        waiting_for: what is to be heard before estimates can begin; "" where they have.
    """
    store = typestore_of("cdr")
    types: Any = store.types

    def status(name: str, level: int, message: str, values: dict[str, Any]) -> Any:
        pairs = [types["diagnostic_msgs/msg/KeyValue"](key=key, value=str(value)) for key, value in values.items()]
        make = types["diagnostic_msgs/msg/DiagnosticStatus"]
        return make(level=level, name=f"nori_dyn: {name}", message=message, hardware_id=robot, values=pairs)

    level, message = _state(account, waiting_for)
    found = [status("estimates", level, message, _estimates(account, total))]
    for topic, counts in total.streams.items():
        now = account.streams.get(topic, Counter())
        level, message = OK, "heard"
        if not now["received"]:
            level, message = STALE, "nothing is heard"
        elif now.total() > now["received"]:
            level, message = WARN, "some messages are wrong"
        found.append(status(topic, level, message, dict(counts)))
    seconds, nanoseconds = divmod(time.time_ns(), 10**9)
    stamp = types["builtin_interfaces/msg/Time"](sec=seconds, nanosec=nanoseconds)
    header = types["std_msgs/msg/Header"](stamp=stamp, frame_id="")
    return bytes(store.serialize_cdr(types[DIAGNOSTIC_ARRAY](header=header, status=found), DIAGNOSTIC_ARRAY))


def _state(account: Account, waiting_for: str) -> tuple[int, str]:
    """The level of a period, and what to say of it."""
    if waiting_for:
        return WARN, f"waiting for {waiting_for}"
    if not account.estimates:
        return ERROR, "no estimates"
    if account.dropped:
        return WARN, f"overload: {account.dropped} messages dropped"
    if account.skipped:
        return WARN, f"{account.skipped.total()} samples left out: {account.skipped.most_common(1)[0][0]}"
    if account.sensors:
        return WARN, f"sensors left out: {', '.join(account.sensors)}"
    if account.collisions:
        return WARN, f"collisions: {', '.join(account.collisions)}"
    if account.overruns:
        return WARN, f"{account.overruns} samples took longer than their period"
    return OK, f"{number(account.rate, 4)} estimates a second"


def _estimates(account: Account, total: Account) -> dict[str, Any]:
    """Figures by name: of the period, and where there are some of all."""
    figures: dict[str, Any] = {"rate": f"{account.rate:.1f}"}
    for what, latency in (("latency", account.latency), ("work", account.work)):
        figures |= {f"{what} {name} [ms]": f"{1e3 * seconds:.3f}" for name, seconds in latency.figures().items()}
    figures |= {"estimates in all": total.estimates, "dropped in all": total.dropped, "overruns in all": total.overruns}
    figures |= {"fell back in all": total.fell_back}
    counts = {"left out": total.skipped, "sensor left out": total.sensors, "suspect": total.suspects}
    for what, of in (counts | {"collisions": total.collisions}).items():
        figures |= {f"{what} in all: {name}": n for name, n in of.items()}
    return figures
