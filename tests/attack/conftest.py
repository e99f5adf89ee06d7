"""What the attacks share: how many cases, from which seed, where scripts of failures go, and a count of it all."""

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attack.victims import Victims

COUNTED = "attacked"

SHORT = 0.05
"""Share of the cases that runs without `--all`."""


@pytest.fixture
def attack_scale(request):
    """How many times as many cases to try as `pytest --all` does."""
    return request.config.getoption("--attack-scale") * (1 if request.config.getoption("--all") else SHORT)


@pytest.fixture
def attack_seed(request):
    """The seed of all that is random."""
    return request.config.getoption("--attack-seed")


@pytest.fixture
def attacked(record_property):
    """What counts cases: attacked("files", 100)."""
    return lambda what, n: record_property(COUNTED, (what, n))


@pytest.fixture
def attack_scripts():
    """The folder for scripts that do a failure again."""
    folder = Path(tempfile.gettempdir()) / "nori_dyn-attack"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def victims() -> Iterator[Victims]:
    """What starts processes that are killed, or denied the disk."""
    started = Victims()
    yield started
    started.close()


def pytest_terminal_summary(terminalreporter, config):
    counts: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name == COUNTED and report.when == "call":
                    counts[value[0]] += value[1]
    if counts:
        shown = ", ".join(f"{n} {what}" for what, n in sorted(counts.items()))
        terminalreporter.write_line(f"attack: {shown}; seed {config.getoption('--attack-seed')}")
