"""The stages to a first estimate run in processes of their own; how long they take is the machine's."""

import nori_dyn as nd
from nori_dyn.bench.stages import STAGES, ways
from nori_dyn.bench.urdf import urdf_of


def test_every_stage_takes_some_time_cold_and_warm(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(urdf_of(nd.autotree(2)))
    found = ways(path, "fixed", "forward_dynamics")
    assert list(found) == ["cold", "warm"]
    for seconds in found.values():
        assert tuple(seconds) == STAGES
        assert all(x >= 0 for x in seconds.values())
