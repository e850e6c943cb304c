"""How kernels are declared and called: which of them count references to arrays, and how they take named tuples."""

import os
from concurrent.futures import ThreadPoolExecutor
from types import FunctionType
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from oddsengine._compilers import USES, listed
from oddsengine._jit import allocating, dispatchers, kernel, without_counts
from oddsengine.columns import Floats, Ints
from oddsengine.compiling.loading import load


def declared(source: str, **names: Any) -> FunctionType:
    """The function of a source, in a module with these names."""
    exec(source, space := {"np": np, "__name__": "somewhere", **names})
    function = next(value for name, value in reversed(space.items()) if isinstance(value, FunctionType))
    assert function.__globals__ is space
    return function


MAKES = declared("def makes(n):\n    return np.zeros(n)\n")
ADDS = declared("def adds(values):\n    both = values + values\n    return both[0]\n")


def test_numba_has_the_option_that_it_does_not_document() -> None:
    assert without_counts() == {"_nrt": False}


def test_a_kernel_that_makes_arrays_needs_the_mark() -> None:
    with pytest.raises(TypeError, match=r"^the kernel somewhere\.makes makes arrays \(zeros\); mark it as allocating$"):
        kernel(MAKES)
    assert kernel(allocating(declared("def makes(n):\n    return np.zeros(n)\n")))(2).tolist() == [0.0, 0.0]


def test_a_kernel_that_makes_arrays_without_naming_it_is_refused_by_numba() -> None:
    with pytest.raises(Exception, match="NRT required"):
        kernel(ADDS)(np.ones(2))


def test_who_calls_a_kernel_that_makes_arrays_needs_the_mark_too() -> None:
    makes: Any = kernel(allocating(declared("def makes(n):\n    return np.zeros(n)\n")))
    source = "def total(n):\n    return makes(n).sum()\n"
    with pytest.raises(TypeError, match=r"^the kernel somewhere\.total calls makes, which makes arrays; mark it as"):
        kernel(declared(source, makes=makes))
    late = declared(source)
    total = kernel(late)
    late.__globals__["makes"] = makes
    with pytest.raises(TypeError, match="calls makes, which makes arrays"):
        total(2)
    assert kernel(allocating(declared(source, makes=makes)))(2) == 0.0


def test_references_to_arrays_are_not_counted() -> None:
    used: Any = kernel(declared("def first(values):\n    return values[0]\n"))
    assert used(np.ones(2)) == 1.0
    code = "".join(used.dispatcher().inspect_llvm().values())
    assert "NRT_incref" not in code
    assert "NRT_decref" not in code


def test_kernels_that_return_arrays_count() -> None:
    """Python would get the array of an argument in place of a part of it."""
    for each in listed(*USES):
        load(each.kernel, each.signature)
    seen = 0
    for name, made in dispatchers.items():
        for signature, found in made.overloads.items():
            seen += 1
            returned = found.signature.return_type
            parts = (returned, *getattr(returned, "types", ()))
            arrays = [part for part in parts if isinstance(part, numba.types.Array)]
            assert made.counts or not arrays, (name, signature)
    assert seen > 100


# ---- named tuples ----

COMPILED = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")


class Levels(NamedTuple):
    """Prices and their book."""

    price: Floats
    book: Ints


class Board(NamedTuple):
    """Levels inside another tuple."""

    levels: Levels
    least: float


class Other(NamedTuple):
    """Has the name of another tuple, and its columns in another order."""

    book: Ints
    price: Floats


Other.__name__ = "Levels"


def _sum(levels: Levels) -> float:
    return float(levels.price[0] + levels.price[1])


def _read(board: Board, other: Other, at: int) -> float:
    own = board.levels.price[at] + 10.0 * board.levels.book[at] + board.least
    return float(own + 100.0 * other.price[at] + 1000.0 * other.book[at])


def _board() -> tuple[Board, Other, int]:
    prices, books = np.array([1.0, 2.0]), np.array([3, 4], np.int32)
    return Board(Levels(prices, books), 0.5), Other(books + 2, prices + 6.0), 1


@COMPILED
def test_python_passes_the_fields_of_tuples_that_a_kernel_takes() -> None:
    """Also of tuples inside tuples, and of two classes of one name."""
    made: Any = kernel(_read)
    assert made(*_board()) == _read(*_board()) == 6842.5
    entry = made.entry().dispatcher()
    assert [len(types) for types in entry.signatures] == [6]
    assert not made._dispatcher, "no other kernel calls it"


@COMPILED
def test_kernels_pass_tuples_to_each_other() -> None:
    source = "def total(board, other, at):\n    return read(board, other, at) + sum_of(board.levels)\n"
    function = declared(source, read=kernel(_read), sum_of=kernel(_sum))
    function.__annotations__ = {"board": Board, "other": Other, "at": int}
    total: Any = kernel(function)
    assert total(*_board()) == _read(*_board()) + 3.0


@COMPILED
def test_threads_that_call_a_kernel_first_wait_for_one_compilation() -> None:
    made: Any = kernel(_read)
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: made(*_board()), range(32))) == {_read(*_board())}
    assert len(made.entry().dispatcher().signatures) == 1


def test_types_as_text_are_refused() -> None:
    function = declared("def first(levels):\n    return levels.price[0]\n")
    function.__annotations__ = {"levels": "Levels"}
    with pytest.raises(TypeError, match=r"^the kernel somewhere\.first has the types Levels as text, which hides"):
        kernel(function)
