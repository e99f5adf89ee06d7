"""Who is told of long work."""

import sys

import nori_dyn as nd
from nori_dyn.tables import progress
from nori_dyn.tables.progress import progress_bar


def test_without_a_terminal_stages_are_lines_where_that_is_wanted_and_a_function_is_told_itself(capsys):
    for watched, lines in ((True, "work: first\nwork: second\n"), (False, ""), (None, "")):
        with progress_bar("work", watched) as stage:
            for name in ("first", "first", "second"):
                stage(name, 0.5)
        assert capsys.readouterr() == ("", lines)
    told = []
    with progress_bar("work", lambda stage, done=None: told.append((stage, done))) as stage:
        stage("first", 0.5)
    assert told == [("first", 0.5)]


def test_on_a_terminal_there_is_a_bar_once_it_takes_long(monkeypatch):
    timers = []

    class Timer:
        def __init__(self, interval, function):
            timers.append((interval, function))

        start = cancel = join = lambda self: None

    monkeypatch.setattr(progress.threading, "Timer", Timer)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress_bar("work") as stage:
        stage("first", 0.5)
    ((interval, start),) = timers
    assert (interval, start.__name__) == (progress.DELAY, "start")


def test_planning_and_sweeps_show_it(capsys):
    system = nd.System(nd.autotree(2), "inverse_dynamics")
    nd.plan(system, ordering="recursive", cache=False, progress=True)
    assert f"planning {system.tree.name} with inverse_dynamics: " in capsys.readouterr().err
    nd.conditioning(system, n=8, workers=1, progress=True)
    assert f"conditioning of {system.tree.name}: " in capsys.readouterr().err
