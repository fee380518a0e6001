"""Inputs made on the host, as their arguments declare them."""

import math
from typing import Any

import numpy as np

from solkit.declare.arg import Arg, Array, Bits, Indices, Normal
from solkit.measure.indexed import shuffled
from solkit.model import Case


def filled(arg: Arg, case: Case, seed: int, dtype: np.dtype[Any]) -> Array:
    """Return an input in stored shape, filled as it is declared; the same for the same seed."""
    rng = np.random.default_rng([seed, *arg.name.encode()])
    shape = arg.stored_shape(case)
    if isinstance(arg.init, Indices):
        return shuffled(arg, arg.init, case, seed)
    if isinstance(arg.init, Bits):
        return np.frombuffer(rng.bytes(arg.nbytes(case)), dtype=dtype).reshape(shape)
    kind: Any = np.float32 if dtype == np.float32 else np.float64
    if isinstance(arg.init, Normal):
        fan_in = case.shape[arg.init.fan_in] if arg.init.fan_in else 1
        values = rng.standard_normal(shape, dtype=kind)
        values *= arg.init.std / math.sqrt(fan_in)
        return values
    values = rng.random(shape, dtype=kind)
    values *= arg.init.high - arg.init.low
    values += arg.init.low
    return values
