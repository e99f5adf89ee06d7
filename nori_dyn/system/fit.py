"""Checks of the shapes that an equation returns: rows for its components, columns for a variable of the robot."""

from __future__ import annotations

from collections.abc import Mapping

from nori_dyn.errors import SensorConfigError
from nori_dyn.system.equation import Equation
from nori_dyn.system.variables import VariableKey


def check_sigma(sensors: str, equation: Equation, sigma: tuple[float, ...] | None) -> None:
    """Check that there is a standard deviation for each row, or none.

    Raises:
        SensorConfigError: there are more or fewer.
    """
    n = len(equation.components)
    if sigma is not None and len(sigma) != n:
        raise SensorConfigError(f"{_named(sensors, equation)}: its sigma has {len(sigma)} numbers, expected {n}.")


def columns_of(
    sensors: str, equation: Equation, key: VariableKey, block: object, columns: Mapping[VariableKey, slice]
) -> slice:
    """Return the columns of a block of an equation, which must have their number, and the equation's rows.

    Raises:
        SensorConfigError: the variable is none of the robot's, or the block has another shape.
    """
    if key not in columns:
        known = f"VariableKey of a kind ({', '.join(dict.fromkeys(k.kind for k in columns))}) and the number of a body"
        raise SensorConfigError(f"{_named(sensors, equation)}: it has a block for {key!r}, expected a {known}.")
    found = columns[key]
    shape = (len(equation.components), found.stop - found.start)
    if not _fits(block, shape):
        more = ", a column for each number of the variable"
        raise _misfit(sensors, equation, f"its block for {key.kind} of body {key.body}", block, shape, more)
    return found


def check_bias(sensors: str, equation: Equation, bias: object) -> None:
    """Check that the rows of b are as many as the equation's.

    Raises:
        SensorConfigError: they are not.
    """
    shape = (len(equation.components),)
    if not _fits(bias, shape):
        raise _misfit(sensors, equation, "its bias", bias, shape, "")


def _fits(values: object, expected: tuple[int, ...]) -> bool:
    """Whether the first axes of an array are as expected; further ones are those of a batch."""
    shape = getattr(values, "shape", None)
    return shape is not None and shape[: len(expected)] == expected


def _misfit(
    sensors: str, equation: Equation, what: str, values: object, expected: tuple[int, ...], more: str
) -> SensorConfigError:
    shape = getattr(values, "shape", None)
    found = f"is a {type(values).__name__}" if shape is None else f"has the shape {shape}"
    return SensorConfigError(
        f"{_named(sensors, equation)}: {what} {found}, expected an array of the shape {expected}: a row for each of "
        f"its components{more}."
    )


def _named(sensors: str, equation: Equation) -> str:
    return f"sensors '{sensors}', '{equation.name}' ({equation.group})"
