"""Types of columns, as different versions of numpy write them."""

from types import GenericAlias
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from oddsengine.columns import Floats, Longs, Words, dtype_of


@pytest.mark.parametrize(("column", "element"), [
    (Longs, np.int64), (Words, np.uint64), (Floats, np.float64), (npt.NDArray[np.uint16], np.uint16),
    (np.ndarray[Any, np.dtype[np.int8]], np.int8),  # numpy before 2.5, or Python 3.11
    (GenericAlias(np.ndarray, (np.uint8,)), np.uint8),  # an alias, whose only argument is the scalar
])  # fmt: skip
def test_a_type_of_column_has_a_dtype(column: Any, element: Any) -> None:
    assert dtype_of(column) is element
