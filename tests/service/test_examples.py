"""The examples in docstrings of the service; pytest itself collects those of the library."""

import doctest
import importlib
from pathlib import Path

import pytest

import oddsengine_service

FOLDER = Path(oddsengine_service.__file__).parent
MODULES = [path.relative_to(FOLDER) for path in sorted(FOLDER.rglob("*.py")) if ">>>" in path.read_text("utf-8")]


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_examples(path: Path) -> None:
    name = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    found = doctest.testmod(importlib.import_module(f"oddsengine_service.{name}"))
    assert found.attempted
    assert not found.failed
