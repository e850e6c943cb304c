"""The packages of a distribution; everything else stands in pyproject.toml.

Every folder of `oddsengine/` and `service/` is one, so that none can be forgotten. The folder is `service/`; it is
installed as `oddsengine_service`, a name that no other distribution has.
"""

from setuptools import find_namespace_packages, setup

CACHES = ["*__pycache__*"]

setup(
    packages=[
        *find_namespace_packages(include=["oddsengine", "oddsengine.*"], exclude=CACHES),
        "oddsengine_service",
        *(f"oddsengine_service.{name}" for name in find_namespace_packages("service", exclude=CACHES)),
    ],
    package_dir={"oddsengine_service": "service"},
)
