"""The heap of a greedy elimination."""

from nori_dyn.planning.orderings.greedy import Heap


def test_an_entry_waits_once_and_comes_up_by_the_key_that_it_has():
    keys = {(0, 0): 3, (0, 1): 1, (1, 0): 2}
    rows = [{0: 1, 1: 1}, {0: 1}]
    heap = Heap(lambda i, j: (0, keys[i, j], False, False, 0, i, j), list(keys))
    keys[0, 1] = 4  # grown: put back when its turn comes
    keys[0, 0] = 0  # less: comes up at once, and once only
    heap.put(0, 0)
    heap.put(0, 0)
    del rows[1][0]  # gone
    assert [heap.pop(rows) for _ in range(3)] == [(0, 0), (0, 1), None]
    heap.put(0, 0)  # one that was taken may come again
    assert heap.pop(rows) == (0, 0)
