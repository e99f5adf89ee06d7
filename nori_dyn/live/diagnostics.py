"""How a live run goes, as ROS says it: diagnostic_msgs/DiagnosticArray."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from nori_dyn.live.account import Account
from nori_dyn.logs.messages.kinds import typestore_of
from nori_dyn.tables import number

KIND = "diagnostic_msgs/msg/DiagnosticArray"

OK, WARN, ERROR, STALE = range(4)
"""Levels of DiagnosticStatus."""


def diagnostics(account: Account, total: Account, robot: str, waiting_for: str = "") -> bytes:
    """Return a message in CDR on a period of a live run.

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
    return bytes(store.serialize_cdr(types[KIND](header=header, status=found), KIND))


def _state(account: Account, waiting_for: str) -> tuple[int, str]:
    """Return the level of a period, and what to say of it."""
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
    """Return figures by name: of the period, and where that is said of all."""
    figures: dict[str, Any] = {"rate": f"{account.rate:.1f}"}
    figures |= {f"latency {name} [ms]": f"{1e3 * seconds:.3f}" for name, seconds in account.latency.figures().items()}
    figures |= {f"work {name} [ms]": f"{1e3 * seconds:.3f}" for name, seconds in account.work.figures().items()}
    figures |= {"estimates in all": total.estimates, "dropped in all": total.dropped, "overruns in all": total.overruns}
    figures |= {"fell back in all": total.fell_back}
    figures |= {f"left out in all: {reason}": n for reason, n in total.skipped.items()}
    figures |= {f"sensor left out in all: {name}": n for name, n in total.sensors.items()}
    figures |= {f"suspect in all: {name}": n for name, n in total.suspects.items()}
    figures |= {f"collisions in all: {name}": n for name, n in total.collisions.items()}
    return figures
