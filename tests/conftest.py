"""Hypothesis profiles: they differ in the number of examples only. HYPOTHESIS_PROFILE chooses one."""

import os

from hypothesis import HealthCheck, settings

for name, examples in {"dev": 50, "ci": 500, "nightly": 20_000}.items():
    settings.register_profile(
        name,
        max_examples=examples,
        deadline=None,  # the first example of a kernel compiles it
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))
