"""How kernels are declared: which of them count references to arrays."""

from types import FunctionType
from typing import Any

import numba
import numpy as np
import pytest

from oddsengine._compilers import USES, listed
from oddsengine._jit import allocating, dispatchers, kernel, without_counts
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
