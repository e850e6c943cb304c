"""What `/health` says."""

import msgspec


class Check(msgspec.Struct, frozen=True, omit_defaults=True):
    """One check: `ok`, `degraded` or `down`."""

    status: str
    latency_ms: int | None = None
    message: str | None = None


class Health(msgspec.Struct, frozen=True):
    """How the node is."""

    status: str
    version: str
    timestamp: str
    checks: dict[str, Check]
