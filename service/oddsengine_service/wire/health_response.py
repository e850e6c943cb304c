"""The body of `/health`."""

import msgspec


class Check(msgspec.Struct, frozen=True, omit_defaults=True):
    """One check: `ok`, `degraded` or `down`."""

    status: str
    latency_ms: int | None = None
    message: str | None = None


class FairPrices(msgspec.Struct, frozen=True):
    """The reference of +EV, and how EV of the last 30 days compares with the close of the other books."""

    reference: str
    table: str
    date: str
    games: int | None
    graded: int | None
    avg_ev: float | None
    avg_clv: float | None
    avg_clv_error: float | None


class Health(msgspec.Struct, frozen=True):
    """Health of the node."""

    status: str
    version: str
    timestamp: str
    checks: dict[str, Check]
    fair: FairPrices
