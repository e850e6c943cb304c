"""Tools without an endpoint: explanations of opportunities, rejected prices, and two calculations."""

import math
import re
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from oddsengine.maths.devig import DEVIG_ALIASES, DEVIG_METHODS, devig
from oddsengine.maths.kelly import kelly
from oddsengine.maths.odds import american_to_decimal, decimal_to_american, round_american
from oddsengine.maths.rounding import exact
from oddsengine_service import shared_params
from oddsengine_service.errors import invalid, quoted
from oddsengine_service.http.endpoints import Context, Endpoint, answer_meta
from oddsengine_service.http.params import Param, Query
from oddsengine_service.routes.odds_routes import filter_of, reading
from oddsengine_service.routes.opportunities.explanation_routes import explained
from oddsengine_service.stream.moves import RowForm, rows_in
from oddsengine_service.wire.numbers import money, precise

_TAG = "MCP"
MOST_ODDS = 40
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)")


def _decimal(words: str, form: str | None) -> list[float]:
    given = words.split(",")
    if form is None and (strange := [word for word in given if not _NUMBER.fullmatch(word.strip())]):
        allowed = "American (-110, +150) or decimal (1.91, 2.5) prices"
        raise invalid(f"odds must be {allowed}, separated by commas, got {quoted(strange[0].strip())}")
    if form is None and any(word.strip()[:1] in ("-", "+") for word in given):
        form = "american"
    elif form is None and all("." in word for word in given):
        form = "decimal"
    elif form is None:
        raise invalid(
            f"odds {quoted(words)} may be American or decimal: set format to american (-110, +150) "
            "or decimal (1.91, 2.5)"
        )
    out = []
    for word in given:
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        good = abs(value) >= 100.0 if form == "american" else 1.0 < value < 10_001.0
        if not good or not math.isfinite(value):
            allowed = "-100 or less, or +100 or more" if form == "american" else "more than 1"
            raise invalid(f"odds must be {form}: {allowed}; got {quoted(word.strip())}")
        out.append(float(american_to_decimal(value)) if form == "american" else value)
    if len(out) > MOST_ODDS:
        raise invalid(f"odds must have at most {MOST_ODDS} prices, got {len(out)}")
    return out


def _devig(context: Context) -> Any:
    odds = _decimal(context.query.odds, context.query.format)
    if len(odds) < 2:
        raise invalid("odds must have a price for every outcome of the market, so at least two, got one")
    method = context.query.method
    fair = devig(odds, method)
    if not np.isfinite(fair).all():
        raise invalid(f"the method {method} has no solution for these odds")
    return {
        "data": [
            {
                "odds_decimal": precise(price),
                "implied_probability": precise(1.0 / price),
                "fair_probability": precise(p),
                "fair_odds_decimal": exact(1.0 / p),
                "fair_odds_american": float(round_american(decimal_to_american(1.0 / p))),
            }
            for price, p in zip(odds, fair.tolist(), strict=True)
        ],
        "margin_percent": exact(100.0 * (sum(1.0 / price for price in odds) - 1.0)),
        "method": method,
    }


def _kelly(context: Context) -> Any:
    query: KellyQuery = context.query
    (odds, *more) = _decimal(query.odds, query.format)
    p = query.probability
    if more:
        raise invalid(f"odds must be a single price, that of one bet, got {1 + len(more)}")
    if p is None or not 0.0 < p < 1.0:
        raise invalid(f"probability must be between 0 and 1 (0.55 for 55 %), got {p if p is not None else 'nothing'}")
    edge = p * odds - 1.0
    full = float(kelly(p, odds))
    share = full * query.fraction
    out = {
        "ev_percent": exact(100.0 * edge),
        "break_even_probability": precise(1.0 / odds),
        "full_kelly_fraction": precise(full),
        "stake_fraction": precise(share),
        "stake": None if query.bankroll is None else money(share * query.bankroll),
        "advice": "no bet: at this price the expected value is not above 0" if edge <= 0.0 else None,
    }
    return {name: value for name, value in out.items() if value is not None}


def _explain(context: Context) -> Any:
    return explained(context, context.query.id.strip(), context.query.event_id.strip())


def _rejected(context: Context) -> Any:
    if not any(context.query.get(name) for name in ("event", "sport", "league", "sportsbook", "market")):
        raise invalid("at least one of event, sport, league, market or sportsbook is required")
    unknown: dict[str, list[str]] = {}
    with reading(context) as reader:
        slots = reader.rejected(reader.matching_rows(filter_of(context, reader.now), unknown))
        page = slots[context.query.offset : context.query.offset + context.query.limit]
        prices = reader.take(page)
    rows: Sequence[Any] = rows_in(RowForm())(prices)
    more = context.query.offset + len(rows) < slots.size
    return {
        "data": rows,
        "pagination": {"has_more": more},
        "meta": {"count": len(rows), "total": int(slots.size), **answer_meta(context, unknown)},
    }


_Format = Annotated[
    str | None,
    Param(
        "How the odds are written; required only if they can be read both ways: 150, but not -110, +150, 1.91.",
        choices=("american", "decimal"),
    ),
]


class DevigQuery(Query):
    """Arguments of `devig`."""

    odds: Annotated[str, Param("Odds of all outcomes of one market, separated by commas: -110,-110 or 1.87,2.05.")]
    format: _Format = None
    method: Annotated[str, Param("How the margin is removed.", choices=(*DEVIG_METHODS, *DEVIG_ALIASES))] = "power"


class KellyQuery(Query):
    """Arguments of `kelly`."""

    probability: Annotated[float, Param("Probability that the bet wins, between 0 and 1 (0.55, not 55).")]
    odds: Annotated[str, Param("The price of the bet, such as +120 or 2.2.")]
    format: _Format = None
    fraction: Annotated[float, Param("Share of full Kelly, such as 0.25.", low=0.0, high=1.0)] = 1.0
    bankroll: Annotated[
        float | None, Param("Bankroll in money; without it only shares are given.", low=0.0, high=1e12)
    ] = None


class ExplainQuery(Query):
    """Arguments of `explain_opportunity`."""

    id: Annotated[str, Param("The opportunity's `id`, as returned by a find_ tool.")]
    event_id: Annotated[str, Param("The opportunity's `event_id`, from the same row.")]
    sportsbook: shared_params.Sportsbook = None
    location: shared_params.Location = None
    stake: shared_params.Stake = None


class RejectedQuery(shared_params.Pages, shared_params.Places):
    """Arguments of `what_was_rejected`."""

    sportsbook: shared_params.Sportsbook = None
    market: shared_params.Market = None
    event: shared_params.Event = None


def _tool(name: str, answer: Any, query: type[Query]) -> Endpoint:
    return Endpoint(f"/mcp/{name}", answer, name, _TAG, None, query, cache="never")


DEVIG = _tool("devig", _devig, DevigQuery)
KELLY = _tool("kelly", _kelly, KellyQuery)
EXPLAIN = _tool("explain_opportunity", _explain, ExplainQuery)
REJECTED = _tool("what_was_rejected", _rejected, RejectedQuery)
