"""Types of the flat columns shared by boards, kernels and queries, and the value of a missing time."""

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]

NO_TIME = np.iinfo(np.int64).min
"""Value of a missing time."""
SECOND = 1_000_000
"""A second in microseconds."""
