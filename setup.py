"""The packages of a distribution, and the kernels of its wheel; everything else stands in pyproject.toml.

Every folder of `oddsengine/` and `service/` is one, so that none can be forgotten. `oddsengine_cli` is the entry point
of the command line, outside of the package because it does without importing that.

A wheel has the kernels of this version of Python where they can be made (`oddsengine.compiling.compilation`), and is
for this platform then. Those of the checkout are taken if they are up to date.
"""

import importlib.util
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from setuptools import Distribution, find_namespace_packages, setup
from setuptools.command.build_py import build_py

CACHES = ["*__pycache__*"]
installation: dict[str, Any] = runpy.run_path("oddsengine/_installation.py")  # without its package
KERNELS = not installation["unsupported"]() and importlib.util.find_spec("numba") is not None
KERNELS = KERNELS and os.environ.get("ODDSENGINE_BUILD_KERNELS") != "0"


class BuildWithKernels(build_py):
    """Copies the packages, then makes their kernels."""

    def run(self) -> None:
        """Build as setuptools does, and make the kernels in the result."""
        if not self.editable_mode:  # what an earlier build left would be packed too
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        if not KERNELS or self.editable_mode:
            return
        folder = Path(self.build_lib, "oddsengine", "kernels").absolute()
        folder.mkdir(exist_ok=True)
        made = Path("oddsengine", "kernels")
        for file in [*made.glob("*.nbc"), *made.glob(installation["PREBUILT_MANIFEST"])]:
            shutil.copy(file, folder)
        # The packages of a build environment are on the path of this process only.
        path = os.pathsep.join([str(Path(self.build_lib).absolute()), *filter(None, sys.path)])
        env = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "oddsengine.commands.prebuild", str(folder)]
        if subprocess.run(command, env=env, cwd=folder, check=False).returncode:
            shutil.rmtree(folder)
            print("oddsengine: the wheel has no kernels; they are compiled on first use", file=sys.stderr)


class WithKernels(Distribution):
    """A distribution whose wheel is for one platform, because of its kernels."""

    def has_ext_modules(self) -> bool:
        """Whether the wheel is for this platform only."""
        return KERNELS


setup(
    packages=[
        *find_namespace_packages(include=["oddsengine", "oddsengine.*"], exclude=[*CACHES, "oddsengine.kernels"]),
        *find_namespace_packages("service", exclude=CACHES),
    ],
    py_modules=["oddsengine_cli"],
    package_dir={"oddsengine_service": "service/oddsengine_service"},
    cmdclass={"build_py": BuildWithKernels},
    distclass=WithKernels,
)
