from collections import Counter

import numpy as np

from nori_dyn.live.account import Account
from nori_dyn.live.latency import Latency


def one(n, **streams):
    account = Account(seconds=1.0, messages=n + 2, estimates=n, dropped=3, overruns=1, fell_back=2)
    account.skipped, account.sensors = Counter({"a reading is missing": 2}), Counter({"imu": 5})
    account.streams = {f"/{name}": Counter(counts) for name, counts in streams.items()}
    for seconds in np.linspace(1e-4, 1e-3, n):
        account.latency.add(seconds)
        account.work.add(seconds / 2)
    return account


def test_accounts_add_up():
    total = Account()
    for account in (one(10, imu={"received": 5, "late": 1}), one(20, imu={"received": 7}, ft={"received": 1})):
        total.join(account)
    figures = total.figures()
    assert (figures["estimates"], figures["rate"], figures["dropped"], figures["seconds"]) == (30, 15.0, 6, 2.0)
    assert figures["streams"] == {"/imu": {"received": 12, "late": 1}, "/ft": {"received": 1}}
    assert figures["skipped"] == {"a reading is missing": 4}
    assert figures["sensors_left_out"] == {"imu": 10}
    assert total.latency.count == 30


def test_the_line_is_one_and_says_what_is_wrong_and_the_tables_name_all_that_is_counted():
    account = one(10, imu={"received": 5, "out_of_order": 4})
    line = account.line(account)
    assert "\n" not in line
    assert line.startswith("1 s | 10 Hz | latency p50 ")
    assert line.endswith("dropped 3 | overruns 1 | out of order 4 | left out 2")
    assert len(one(10, imu={"received": 5}).line(account).partition(" | out of order")[0]) < 80
    account = one(10, imu={"received": 5, "repeated": 1})
    account.suspects = Counter({"knee": 2})
    text = account.document("publishing a message").text(None, False)
    for said in ("estimates", "from publishing a message", "a reading is missing", "/imu", "knee", "the oldest first"):
        assert said in text
    assert text.replace("/imu", "").count("imu")  # the sensor, besides the stream
    assert Account(latency=Latency()).document("arrival").text(80, False)
