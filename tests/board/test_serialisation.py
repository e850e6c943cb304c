"""Arrays and batches as plain data, and back."""

from typing import Any

import msgspec
import numpy as np
import pytest

from oddsengine.board.rows import CodedQuotes
from oddsengine.board.serialisation import (
    array_content,
    array_of_content,
    batch_content,
    batch_of_content,
    no_quotes,
)
from oddsengine.board.state import Batch

TIME = 1_770_000_000_000_000


def through_msgpack(content: Any) -> Any:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(content), strict=False)


def bits(array: Any) -> tuple[Any, ...]:
    return array.dtype, array.shape, array.tobytes()


def a_batch() -> Batch:
    columns = CodedQuotes(
        np.array([5, -(2**62), 7]), np.array([1.5, np.nan, -0.0]), np.array([np.nan, -120.0, np.inf]),
        np.array([TIME, 1, 2]), np.array([3, 4, 5]), np.array([6, 7, 8]), np.array([0, 255, 1], np.uint8),
    )  # fmt: skip
    raw_label = ("e", None, "nba", "a", "b", "moneyline", None, "é", None, -1.5)
    return Batch(
        TIME, [raw_label, raw_label], ["fanduel"], columns, [None, "https://b\x1f€", None],
        np.array([0, 2**64 - 1], np.uint64), [("fanduel", None), ("fanduel", "e")], [("e", "ended", TIME)],
        {"stale": 2},
    )  # fmt: skip


@pytest.mark.parametrize("backwards", [False, True])
def test_a_batch_comes_back_to_the_bit(*, backwards: bool) -> None:
    batch = a_batch()
    if backwards:  # columns that are not contiguous
        batch = batch._replace(quoted=CodedQuotes._make(column[::-1] for column in batch.quoted))
    content = batch_content(batch)
    again = batch_of_content(through_msgpack(content))
    assert [bits(column) for column in again.quoted] == [bits(column) for column in batch.quoted]
    assert bits(again.removed) == bits(batch.removed)
    assert again._replace(quoted=batch.quoted, removed=batch.removed) == batch
    assert batch_content(again) == content


def test_decoded_arrays_can_be_written_to() -> None:
    again = batch_of_content(batch_content(a_batch()))
    assert all(column.flags.writeable for column in (*again.quoted, again.removed))
    assert array_of_content(array_content(np.zeros(2))).flags.writeable


def test_no_quotes_have_the_dtypes_of_quotes() -> None:
    assert [column.dtype for column in no_quotes()] == [column.dtype for column in a_batch().quoted]
    assert not any(column.size for column in no_quotes())


def test_an_array_keeps_its_shape_and_dtype() -> None:
    for array in (np.arange(6.0).reshape(2, 3)[:, ::-1], np.empty((0, 4), np.uint16), np.array([True, False])):
        assert bits(array_of_content(through_msgpack(array_content(array)))) == bits(array)
