"""What `/health` says."""

import msgspec


class Check(msgspec.Struct, frozen=True, omit_defaults=True):
    """One check: `ok`, `degraded` or `down`."""

    status: str
    latency_ms: int | None = None
    message: str | None = None


class FairPrices(msgspec.Struct, frozen=True):
    """What +EV is measured against, and how the EV that was shown in the last 30 days did at the others' close."""

    reference: str
    table: str
    date: str
    games: int | None
    graded: int | None
    avg_ev: float | None
    avg_clv: float | None
    avg_clv_error: float | None


class Health(msgspec.Struct, frozen=True):
    """How the node is."""

    status: str
    version: str
    timestamp: str
    checks: dict[str, Check]
    fair: FairPrices
