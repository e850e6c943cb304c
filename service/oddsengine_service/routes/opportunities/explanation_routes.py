"""Explanations of opportunities: the market's prices, the reference, and rejected prices with reasons."""

from typing import Annotated, Any

import numpy as np
import polars as pl

from oddsengine import Explanation, catalog
from oddsengine.columns import Floats
from oddsengine.detection.explain import explain
from oddsengine.detection.kinds import KINDS, Kind
from oddsengine.history.movements import described
from oddsengine.live.update import hexadecimal
from oddsengine.maths.devig import DEVIG_ALIASES, DEVIG_METHODS, devig
from oddsengine.maths.odds import decimal_to_american, round_american
from oddsengine.tables.timestamps import micros, timestamps
from oddsengine_service import shared_params
from oddsengine_service.errors import Problem, quoted
from oddsengine_service.http.endpoints import Context, Endpoint, data
from oddsengine_service.http.params import Param, Query
from oddsengine_service.routes.odds_routes import books_for
from oddsengine_service.routes.opportunities.lists import TAG, reference
from oddsengine_service.tiers import books_of, feature_above
from oddsengine_service.wire.envelopes import Data
from oddsengine_service.wire.numbers import precise, rounded

MOST_PRICES, MOST_POINTS = 40, 500
_REJECTED = "set aside"  # a rejected price's `role` in responses


def explained(context: Context, ident: str, event: str) -> dict[str, Any]:
    """Explain an open opportunity over the books that a caller may see.

    Raises `Problem` 404 if the event or the opportunity does not exist, 403 if the tier lacks its kind or one of the
    named books.
    """
    query, own = context.query, books_of(context.caller.tier.id)
    books = books_for(context, query.sportsbook)
    exists, sharp = reference(context, {})
    if not exists:
        books = frozenset()
    method = query.get("devig_method") or ("power" if sharp else context.node.boards.method)
    table = context.board.table()
    table = table.filter(table["event_id"] == event)
    if table.is_empty():
        raise Problem(404, "not_found", f"unknown event {quoted(event)}, or no prices for it")
    try:
        explanation = explain(
            table, ident, books=books, sharp=sharp, method=method, now=context.board.now,
            include=("suspect", "one_sided"), fair=context.board.fair, stake=query.get("stake"),
        )  # fmt: skip
    except ValueError:
        raise Problem(
            404, "not_found",
            f"no opportunity {quoted(ident)} in event {quoted(event)}: it has expired or belongs to another event",
        ) from None  # fmt: skip
    kind = KINDS.of_one(explanation.kind)
    feature = kind.name
    if feature not in context.caller.features:
        raise feature_above(feature, context.caller.tier)
    row = explanation.opportunity
    published = explanation.prices.with_columns(pl.col("role").replace("rejected", _REJECTED))
    prices, rejected = _seen(published, own), _seen(explanation.rejected, own)
    return {
        "kind": explanation.kind,
        "id": ident,
        "event_id": event,
        "event": row["event_name"],
        "market": row["market_type"],
        "figures": _figures(kind, row),
        "reference": explanation.reference or "none: the best prices themselves were de-vigged",
        "devig_method": explanation.method,
        "fair": [_plain(each) for each in explanation.fair.to_dicts()],
        "prices": [_plain(each) for each in prices[:MOST_PRICES]],
        "terms": _terms(explanation.terms),
        "rejected": [_plain(each) for each in rejected[:MOST_PRICES]],
        "left_out": max(0, len(prices) - MOST_PRICES) + max(0, len(rejected) - MOST_PRICES),
        "formula": kind.formula,
        **_fair_line(context, explanation, event),
    }


def _terms(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """What the legs settle on, by case; terms that are unknown are null."""
    out: dict[str, dict[str, Any]] = {}
    for row in frame.to_dicts():
        about = {"case": row["case"], "differ": row["differ"], "result_percent": rounded(row["result_percent"])}
        dated = row["date"] and row["date"].isoformat()
        leg = {"sportsbook": row["sportsbook"], "terms": row["terms"], "source": row["source"], "date": dated}
        out.setdefault(row["case"], about | {"legs": []})["legs"].append(leg)
    return list(out.values())


def _fair_line(context: Context, explanation: Explanation, event: str) -> dict[str, Any]:
    """Movement of a +EV bet's fair probability, by the prices of its reference or of the sharpest book."""
    past, now = context.node.past, context.board.now
    if explanation.kind != "ev" or past is None or now is None:
        return {}
    book = explanation.opportunity["sharp_book"]
    ids = explanation.prices.filter(pl.col("sportsbook") == book).select("outcome", "odds_id").rows()
    outcomes = explanation.fair["outcome"].to_list()
    places = {ident: outcomes.index(outcome) for outcome, ident in ids if outcome in outcomes}
    legs = explanation.prices.filter(pl.col("role") == "leg")["outcome"].to_list()
    if sorted(places.values()) != list(range(len(outcomes))):
        return {}
    moves = past.history.changes_of_event(event, micros(now))
    names = hexadecimal(described(moves)[3]) if moves.raw_labels else []
    current = np.full(len(outcomes), np.nan)
    columns: list[Floats] = []
    times: list[int] = []
    for at in np.argsort(moves.at, kind="stable").tolist():
        place = places.get(names[moves.row[at]])
        if place is None:
            continue
        current[place] = moves.odds[at] if moves.active[at] else np.nan
        if times and times[-1] == moves.at[at]:
            columns[-1] = current.copy()
        else:
            times.append(int(moves.at[at]))
            columns.append(current.copy())
    whole = [(at, odds) for at, odds in zip(times, columns, strict=True) if not np.isnan(odds).any()][-MOST_POINTS:]
    if not whole:
        return {}
    fair = devig(np.array([odds for _, odds in whole]), explanation.method)[:, outcomes.index(legs[0])]
    stamps = timestamps(np.array([at for at, _ in whole]))
    points = [{"at": at, "probability": precise(p)} for at, p in zip(stamps, fair.tolist(), strict=True)]
    return {"fair_line_book": catalog.book(book).id, "fair_line": points}


def _seen(frame: pl.DataFrame, own: frozenset[str] | None) -> list[dict[str, Any]]:
    """Prices of the books that a caller may see."""
    names = {
        "net_odds": "odds_decimal_after_commission", "own_fair": "own_fair_probability", "ev_percentage": "ev_percent",
    }  # fmt: skip
    return [
        {names.get(name, name): value for name, value in each.items()}
        | {"odds_american": float(round_american(decimal_to_american(each["odds_decimal"])))}
        for each in frame.to_dicts()
        if own is None or catalog.book(each["sportsbook"]).id in own
    ]


def _figures(kind: Kind, row: dict[str, Any]) -> dict[str, Any]:
    return _plain({new: row[old] for old, new in kind.explained.items()})


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {k: precise(v) if isinstance(v, float) else v for k, v in row.items() if v is not None}


def explanation(context: Context) -> Any:
    return data(context, explained(context, context.path["opportunityId"], context.query.event_id))


class ExplainQuery(Query):
    """Parameters of an explanation."""

    event_id: Annotated[str, Param("The id of its event.")]
    sportsbook: shared_params.Sportsbook = None
    location: shared_params.Location = None
    location_unknown: shared_params.LocationUnknown = False
    stake: shared_params.Stake = None
    devig_book: Annotated[str | None, Param("Reference book, as on the +EV list.")] = None
    devig_method: Annotated[
        str | None, Param("De-vig method, as on the +EV list.", choices=(*DEVIG_METHODS, *DEVIG_ALIASES))
    ] = None


endpoints = (
    Endpoint(
        "/opportunities/explain/{opportunityId}", explanation, "Explain an opportunity", TAG,
        Data[dict[str, Any]],
        ExplainQuery,
        cache="never",
        doc="All prices of the market with their age, role, own fair probability, and the fair probability and EV that "
        "the +EV list has for each; the source of the fair price; "
        "what the bets settle on in a tie, a postponement and so on (`terms`); prices that were not used and why; and, "
        "for +EV bets, the history of the fair probability (`fair_line`).",
    ),
)  # fmt: skip
