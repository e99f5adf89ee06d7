"""Arrays as users have them: states that C reads where they lie, and what is none, or has to be made one by Python."""

import numpy as np


class Own(np.ndarray):
    """Arrays of somebody else."""


def unaligned(x):
    room = np.zeros(x.nbytes + 4, dtype=np.uint8)[4:].view(float).reshape(x.shape)
    room[:] = x
    return room


def _records(x):
    records = np.zeros(x.shape, dtype=[("x", "f8"), ("y", "f4")])
    records["x"] = x
    return records


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


FITS = {
    "plain": lambda x: x.copy(),
    "number by number": np.asfortranarray,
    "some of more columns": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "every other row": lambda x: np.repeat(x, 2, axis=0)[1::2],
    "backwards": lambda x: np.flip(np.flip(x).copy()),
    "one state for all": lambda x: np.broadcast_to(x[0], x.shape),
    "one number for all": lambda x: np.broadcast_to(x.flat[0], x.shape),
    "read-only": read_only,
    "of a buffer": lambda x: np.frombuffer(x.tobytes()).reshape(x.shape),
}
CONVERTED = {
    "a list": lambda x: x.tolist(),
    "another class": lambda x: x.view(Own),
    "single precision": lambda x: x.astype(np.float32),
    "objects": lambda x: x.astype(object),
    "not aligned": unaligned,
    "odd steps": lambda x: _records(x)["x"],
}
MISFITS = CONVERTED | {
    "nothing": lambda x: None,
    "a masked array": np.ma.masked_array,
    "integers": lambda x: x.astype(np.int64),
    "complex": lambda x: x.astype(complex),
    "the other byte order": lambda x: x.astype(">f8"),
    "dates": lambda x: np.zeros(x.shape, dtype="M8[s]"),
    "records": _records,
    "longer": lambda x: np.concatenate([x, x]),
    "shorter": lambda x: x[1:],
    "wider": lambda x: np.concatenate([x, x], axis=-1),
    "narrower": lambda x: x[..., 1:],
    "one state": lambda x: x[0],
    "one axis more": lambda x: x[None],
    "a number": lambda x: np.array(1.0),
}
