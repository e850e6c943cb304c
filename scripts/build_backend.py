"""The build backend: setuptools, with what it takes to make kernels among the requirements of a wheel.

`ODDSENGINE_BUILD_KERNELS=0` builds a wheel without kernels, for any platform.
"""

import os
import runpy
import tomllib
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """Return the requirements of setuptools and, unless no kernels are wanted, of the package with its own compiler."""
    needed: list[str] = build_meta.get_requires_for_build_wheel(config_settings)
    root = Path(__file__).parent.parent
    unsupported = runpy.run_path(str(root / "oddsengine" / "_installation.py"))["unsupported"]
    if os.environ.get("ODDSENGINE_BUILD_KERNELS") == "0" or unsupported():
        return needed
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [*needed, *project["dependencies"], *project["optional-dependencies"]["kernels"]]


__all__ = [
    "build_editable", "build_sdist", "build_wheel", "get_requires_for_build_editable", "get_requires_for_build_sdist",
    "get_requires_for_build_wheel", "prepare_metadata_for_build_editable", "prepare_metadata_for_build_wheel",
]  # fmt: skip
