"""Bets of a key: recording, notes, settlement and export."""

import secrets
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from oddsengine import catalog
from oddsengine.query import values
from oddsengine_service.accounts.records import NamedRecord, changed
from oddsengine_service.bettors.bet_report import BetReport, report
from oddsengine_service.bettors.bets import (
    SHARES,
    Bet,
    BetChanges,
    BetImport,
    BetSummary,
    Imported,
    NewBet,
    Result,
    bet_of_import,
    figures,
    graded,
    keep,
    placing_time,
    result_of,
    summary,
    waiting_event,
)
from oddsengine_service.errors import invalid, quoted
from oddsengine_service.http.downloads import csv_file
from oddsengine_service.http.endpoints import Context, Endpoint, answer_meta, damaged, data, page
from oddsengine_service.http.params import Param, Query, Words
from oddsengine_service.routes.bet_games import located
from oddsengine_service.shared_params import Pages
from oddsengine_service.wire.envelopes import Counted, Damaged, Data, DataWith, Deleted, PageWith, RecordsMeta

_TAG = "Bets"


class BetMeta(Counted, kw_only=True):
    """Totals of all bets in the list."""

    summary: BetSummary
    damaged: Damaged = UNSET


class BetPage(PageWith[Bet, BetMeta]):
    """A page of bets."""


def bets(context: Context) -> Any:
    query: BetsQuery = context.query
    matching = _matching(context)
    if query.format == "csv":
        rows = ([*msgspec.to_builtins(bet).values()] for bet in matching)
        return csv_file(f"bets_{datetime.now(UTC):%Y-%m-%d}", [Bet.__struct_fields__, *rows])
    shown = matching[query.offset : query.offset + query.limit]
    return page(context, shown, len(shown), len(matching), _meta(context, summary=summary(matching)))


def _meta(context: Context, **meta: Any) -> dict[str, Any]:
    return answer_meta(context, None, **meta, **damaged(context, "bet"))


def _matching(context: Context) -> list[Bet]:
    """The bets that match a query, newest first."""
    query: BetFilter = context.query
    found = sorted(
        context.node.records.all(context.caller.key, "bet", Bet), key=lambda bet: (bet.placed_at, bet.id), reverse=True
    )
    masks: list[list[bool]] = []
    if query.status is not None:
        masks.append([(bet.result is None) == (query.status == "open") for bet in found])
    if query.since is not None:
        masks.append([bet.placed_at >= query.since for bet in found])
    if query.until is not None:
        masks.append([bet.placed_at < query.until for bet in found])
    if query.sportsbook is not None:
        books = {catalog.book(word).id for word in query.sportsbook}
        masks.append([catalog.book(bet.sportsbook).id in books for bet in found])
    if query.market is not None:
        masks.append(values.in_markets(query.market, [(bet.sport, bet.market_type) for bet in found]))
    if query.q is not None:
        texts = (
            " ".join((bet.selection, bet.home_team, bet.away_team, bet.player_name or "", bet.note)) for bet in found
        )
        masks.append(values.containing(query.q, texts))
    return [bet for bet, *wanted in zip(found, *masks, strict=True) if all(wanted)]


def reported(context: Context) -> Any:
    contents = report(_matching(context))
    return data(context, contents, **damaged(context, "bet"))


def place(context: Context) -> Any:
    new: NewBet = context.body
    bet = figures(
        Bet(**msgspec.structs.asdict(new) | {"id": secrets.token_hex(8), "placed_at": placing_time(new.placed_at)})
    )
    (bet,) = located(context, [bet])
    keep(context.node.records, context.caller.key, bet)
    return data(context, bet)


def take(context: Context) -> Any:
    body: BetImport = context.body
    now = datetime.now(UTC)
    made: dict[str, Bet] = {}
    for new in body.bets:
        bet = bet_of_import(new, now if new.placed_at is None else placing_time(new.placed_at))
        made[bet.id] = bet
    records, key = context.node.records, context.caller.key
    bets = located(context, list(made.values()))  # before the lock, for which every key waits
    with records.alone:
        present = {bet.id for bet in records.all(key, "bet", Bet)}
        fresh_bets = [bet for bet in bets if bet.id not in present]
        records.put_all(key, [NamedRecord("bet", bet.id, bet, waiting_event(bet)) for bet in fresh_bets])
    fresh = len(fresh_bets)
    return data(context, Imported(fresh, len(body.bets) - fresh))


def change(context: Context) -> Any:
    changes: BetChanges = context.body
    home, away = changes.home_score, changes.away_score
    scores = (home, away) if isinstance(home, int) and isinstance(away, int) else None
    if scores is None and home is not away:
        raise invalid("home_score and away_score must be given together, or both be null")
    records = context.node.records
    with records.alone:
        if changes.placed_at is not UNSET:
            changes = msgspec.structs.replace(changes, placed_at=placing_time(changes.placed_at))
        bet = changed(records.get(context.caller.key, "bet", context.path["betId"], Bet), changes)
        if scores is not None:
            _check_scores(bet, scores, changes.result)
        if changes.result is not UNSET:
            bet = msgspec.structs.replace(bet, graded_by=None if bet.result is None else "hand")
            if bet.result is None:
                bet = msgspec.structs.replace(bet, home_score=None, away_score=None)
        elif scores is not None:
            bet = graded(bet, *scores)
        elif home is None:
            bet = msgspec.structs.replace(bet, result=None, graded_by=None)
        bet = figures(bet)
        keep(records, context.caller.key, bet)
    return data(context, bet)


def _check_scores(bet: Bet, scores: tuple[int, int], result: Result | UnsetType | None) -> None:
    """Reject scores that do not settle the bet, or that contradict the result beside them."""
    by_scores = result_of(bet, *scores)
    if by_scores is None and not result:
        market = f"market_type {quoted(bet.market_type)}" if bet.market_type else "no market_type"
        market += " and a tie" if scores[0] == scores[1] else ""
        *most, last = SHARES
        raise invalid(
            f"home_score and away_score do not settle a bet with {market}; pass result: {', '.join(most)} or {last}"
        )
    if by_scores is not None and result not in (UNSET, by_scores):
        raise invalid(
            f"result must be that of the score {scores[0]} to {scores[1]}, {by_scores}, got {result or 'null'}; pass "
            "result alone to override it"
        )


def delete(context: Context) -> Any:
    context.node.records.delete(context.caller.key, "bet", context.path["betId"])
    return data(context, Deleted(deleted=True))


class BetFilter(Query):
    """Filters of bets."""

    status: Annotated[str | None, Param("Open or settled bets only.", choices=("open", "settled"))] = None
    since: Annotated[datetime | None, Param("Placed at or after this time.")] = None
    until: Annotated[datetime | None, Param("Placed before this time.")] = None
    sportsbook: Annotated[Words, Param("Sportsbooks.")] = None
    market: Annotated[Words, Param("Market types, or the categories main, spread, total and props.")] = None
    q: Annotated[str | None, Param("Part of a selection, team, player or note, ignoring case and accents.")] = None


class BetsQuery(BetFilter, Pages):
    """Parameters of `/bets`."""

    format: Annotated[str, Param("Response format.", choices=("json", "csv"))] = "json"


endpoints = (
    Endpoint(
        "/bets", bets, "Bets of this key", _TAG, BetPage,
        BetsQuery, cache="records", doc="Newest first. Bets are private to a key, even within an account.",
    ),
    Endpoint(
        "/bets", place, "Record a bet", _TAG, Data[Bet], method="POST", body=NewBet, cache="records", status=201,
        doc="The closing line is added when the event begins, and the result when the game is over. Without an "
        "`event_id`, the game is the next one on the board of the teams that the bet names; `no_close` says why there "
        "will be no closing line. Bets on props and periods have to be settled with PATCH.",
    ),
    Endpoint(
        "/bets/import", take, "Record many bets", _TAG, Data[Imported], method="POST", body=BetImport, cache="records",
        doc="All bets are recorded, or none. A bet with the same fields (`note` aside) as one imported before is "
        "skipped, so a file can be imported again after it has grown.",
    ),
    Endpoint(
        "/bets/{betId}", change, "Change or settle a bet", _TAG, Data[Bet], method="PATCH", body=BetChanges,
        cache="records",
        doc="`home_score` and `away_score` settle the bet by the rules of its market; `result` alone overrides it.",
    ),
    Endpoint(
        "/bets/report", reported, "Report on bets", _TAG, DataWith[BetReport, RecordsMeta], BetFilter, cache="records",
        doc="Cumulative profit (`course`) of the settled bets, with the profit expected when they were placed and at "
        "closing prices; and figures by book, market and month. Void bets are left out. `error` and `clv_error` are "
        "90 % errors: of the result, by the closing probabilities, and of the mean CLV, by the variation of the CLVs.",
    ),
    Endpoint("/bets/{betId}", delete, "Delete a bet", _TAG, Data[Deleted], method="DELETE", cache="records"),
)  # fmt: skip
