"""What `print(plan_set)` and `print` of its solver say."""

import nori_dyn as nd

CONTACTS = {
    "name": "tips",
    "measurements": [
        {"type": "joint_acceleration", "joints": "all"},
        {"type": "external_wrench", "links": "link1", "value": 0},
    ],
    "contacts": {
        f"tip{k}": {
            "closed": [{"type": "external_wrench", "links": f"link{k}"}],
            "open": [{"type": "external_wrench", "links": f"link{k}", "value": 0}],
        }
        for k in (2, 3)
    },
}


def test_plans_of_contact_states_as_text():
    plans = nd.plan(nd.autotree(3, 2), nd.SensorSet.from_dict(CONTACTS), ["tau"])
    rows = [" ".join(line.split()) for line in str(plans).splitlines()]
    assert "contacts tip2, tip3" in rows
    for state, name in ((("tip2", "tip3"), "tip2, tip3"), ((), "no contact")):
        one = plans[state]
        expected = f"{name} {one.system.ny} 60 {one.ordering} {one.cost.total:,} "
        assert any(row.startswith(expected) for row in rows), rows
    solver = plans.solver("numpy")
    solver.switch(("tip2",))
    rows = [" ".join(line.split()) for line in str(solver).splitlines()]
    assert "closed now tip2" in rows
    assert "* tip2 yes" in rows
    assert "no contact" in rows
    assert "2 of 4 are prepared, the others when first needed." in rows
