"""What filters make of logs of robots that exist."""

import pytest

from benchmarks.real import icub_offsets
from tests.agreement.test_real_robots import DATA, figure, finding

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def offsets():
    """Return what came of the offsets of the iCub on one leg, worked out once."""
    if not (DATA / "real" / "icub_one_leg").is_dir():
        pytest.skip("the data set icub_one_leg is not here: see docs/real_robots.md")
    return icub_offsets.run(DATA, ["constants", "walking"])


@pytest.mark.parametrize("sensor", icub_offsets.SENSORS)
def test_wrenches_of_the_icub_are_nearer_without_the_offsets_learned_before(offsets, sensor):
    """Each sensor's largest offset, of 4 to 290 N, is gone but for what the model is off."""
    read = finding(offsets, f"{sensor}, as read").rms
    less = finding(offsets, f"{sensor}, less the offset 5 s before, walking").rms
    largest = max(range(3), key=lambda k: read[k])
    assert less[largest] < 0.2 * read[largest]


def test_deviations_of_offsets_are_honest_where_they_may_walk(offsets):
    assert figure(offsets, "walking: later estimates within 3 deviations").value > 0.99
    assert figure(offsets, "walking: rms over deviations").value < 1.2


def test_deviations_of_constants_are_not(offsets):
    """A model that is off by newtons is no white noise: these say so."""
    assert figure(offsets, "constants: later estimates within 3 deviations").value < 0.5
    assert figure(offsets, "constants: chi-square").value > 5
