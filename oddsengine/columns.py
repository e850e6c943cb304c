"""Flat columns shared by boards, kernels and queries: types, growth, and the value of a missing time."""

from typing import Any, get_args

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
Int = int | np.integer[Any]
"""A whole number as Python or an array gives it: what kernels take and return."""
Float = float | np.floating[Any]
"""A number likewise."""
Bool = bool | np.bool_
"""A truth value likewise."""

NO_TIME = np.iinfo(np.int64).min
"""Value of a missing time."""
EARLIEST, LATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
"""Bounds of all times, from which minima and maxima start."""
SECOND = 1_000_000
"""A second in microseconds."""
NONE = -1
"""An index that points at nothing: no row, market, ladder, slot or book."""


def dtype_of(column: Any) -> Any:
    """Return the dtype of the elements of a type of column, such as `Longs`."""
    element = get_args(column)[-1]  # the dtype, or since numpy 2.5 on Python 3.12 its scalar
    return (get_args(element) or (element,))[0]


def grown(column: npt.NDArray[Any], size: int, fill: float = 0) -> npt.NDArray[Any]:
    """Return a column of at least a size: itself, or a copy with new rows of a value and some to spare."""
    if column.shape[0] >= size:
        return column
    more = np.full((size + size // 4 - column.shape[0], *column.shape[1:]), fill, column.dtype)
    return np.concatenate((column, more))


def spans(first: Longs, last: Longs) -> Longs:
    """Concatenate half-open ranges of numbers."""
    size = last - first
    ends = np.cumsum(size)
    numbers = np.arange(ends[-1] if ends.size else 0) + np.repeat(first - (ends - size), size)
    return np.asarray(numbers, np.int64)
