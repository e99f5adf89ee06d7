"""Recorded robots: the samples of a log, brought to one clock and checked.

    formats ─► mapping ─► clock ─► samples ─► (plan) ─► formats
    streams    columns

`formats/` reads and writes files, `mapping/` ties columns to a robot, `drafts/` guesses how, `messages/` are those of
ROS, `motion/` filters and differentiates what is read of joints.
"""
