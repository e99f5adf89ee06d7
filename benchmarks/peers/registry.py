"""The peers that exist, by name."""

from __future__ import annotations

from benchmarks.peers import adam, cpp, drake, idyntree, mjx, mujoco, pinocchio, recursions, sparse
from benchmarks.peers.base import Peer

PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        pinocchio.PEER,
        pinocchio.LOOPS,
        mujoco.PEER,
        idyntree.PEER,
        drake.PEER,
        adam.PEER,
        sparse.KLU,
        sparse.UMFPACK,
        sparse.SPLU,
        recursions.PEER,
    )
}

MANY: dict[str, Peer] = {peer.name: peer for peer in (*cpp.PEERS, mjx.PEER)}
"""Those whose runs go through many states a call."""
