from collections import Counter

import numpy as np

from nori_dyn.live.account import A_DECADE, Account, Latency


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
    assert total.latency.bins.total() == 30


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


def test_quantiles_are_those_of_the_durations():
    durations = np.exp(np.random.default_rng(0).normal(-8, 1.5, 5000))
    latency = Latency()
    for seconds in durations:
        latency.add(float(seconds))
    for share in (0.5, 0.99, 0.999):
        exact = np.quantile(durations, share, method="inverted_cdf")
        assert exact * (1 - 1e-12) <= latency.quantile(share) <= exact * 10 ** (1 / A_DECADE)
    assert latency.largest == durations.max()
    assert latency.bins.total() == 5000


def test_two_joined_are_one_of_both():
    durations = np.random.default_rng(0).exponential(1e-3, 400)
    one, other, both = Latency(), Latency(), Latency()
    for k, seconds in enumerate(durations.tolist()):
        (one, other)[k % 2].add(seconds)
        both.add(seconds)
    one.join(other)
    assert one.figures() == both.figures()


def test_clocks_that_disagree_are_counted_nothing_has_no_figures_and_what_lasts_long_is_held():
    latency = Latency()
    latency.add(-0.1)
    latency.add(0.2)
    assert (latency.bins.total(), latency.largest) == (2, 0.2)
    assert Latency().figures() == {}
    latency = Latency()
    latency.add(1e7)
    assert latency.quantile(0.99) == latency.largest or latency.quantile(0.99) <= 1e7
