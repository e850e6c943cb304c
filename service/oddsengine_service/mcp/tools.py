"""All tools: the endpoint of each, its arguments, and the shape of its rows."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

import msgspec

from oddsengine import catalog
from oddsengine.detection.kinds import KINDS, Kind
from oddsengine_service.errors import invalid, quoted
from oddsengine_service.http.endpoints import Endpoint
from oddsengine_service.http.params import MOST_LIMIT, MOST_OFFSET, Param, Query, text_of
from oddsengine_service.mcp import local, tool_answers
from oddsengine_service.mcp.tool_answers import Row, Shape

DEFAULT_ROWS, MOST_ROWS = 10, 50
MOST_BYTES = 32_000  # bytes of one response
_TIME = "Times are UTC; `now` is the time of the prices, and ages are seconds before it. In `A @ B`, B is at home."
_PRICES = (
    "odds_american: +150 wins 150 on 100 staked, -150 stakes 150 to win 100. implied_probability includes the book's "
    "margin: it is not a fair probability. `can_be_bet` false means suspended or rejected: do not recommend it."
)
_EDGE = "Percent fields are percent (2.5 is 2.5 %), probabilities and fractions 0 to 1. Estimates, not certainties."
_STALE = "`possibly_stale`, `unconfirmed` or `warnings` mean: check the price at the book before acting on it."
_TERMS = "`terms`: where the legs are known to settle differently, and the result then, in percent of the total stake."


class RowRange(Query):
    """Which rows to show."""

    limit: Annotated[int, Param("Maximum number of rows.", low=1, high=MOST_ROWS)] = DEFAULT_ROWS
    offset: Annotated[int, Param("Number of rows to skip.", low=0, high=MOST_OFFSET)] = 0


@dataclass(frozen=True)
class Tool:
    """One tool. `endpoint` is a path of the API, or an endpoint of the tool's own.

    With `shape` or `rows`, a response is rows in pages; otherwise it is the endpoint's result.
    """

    name: str
    endpoint: str | Endpoint
    about: str
    args: tuple[str, ...] = ()
    shape: Shape | None = None  # of one row
    rows: Callable[[Any, datetime], list[Row]] | None = None  # all rows of a result
    notes: tuple[str, ...] = ()
    only: Mapping[str, Any] = field(default_factory=dict)  # fixed arguments

    @property
    def paged(self) -> bool:
        """Whether a response is rows in pages."""
        return self.shape is not None or self.rows is not None


_PUBLISHED: tuple[Tool, ...] = (
    Tool("get_sports", "/sports", "Sports with events on the board, and their leagues.", ("include_empty",),
         tool_answers.fields("id", "name", "event_count", "live_count", "leagues")),
    Tool("get_leagues", "/leagues", "Leagues with events on the board.", ("sport", "include_empty"),
         tool_answers.fields("id", "name", "sport", "event_count", "live_count")),
    Tool("get_sportsbooks", "/sportsbooks", "Sportsbooks, whether they are sharp, and the tier they need.",
         ("region", "location", "sharp"),
         tool_answers.fields("id", "name", "is_sharp", "regions", "requires_tier", "status", "event_count")),
    Tool("get_markets", "/markets", "Market types with prices.", (),
         tool_answers.fields("id", "name", "description", "hasLine", "event_count", "sports")),
    Tool("get_events", "/events", "Games on the board, sorted by start. Start here to find an event_id.",
         ("sport", "league", "team", "live", "date", "q"), tool_answers.event, notes=(_TIME,)),
    Tool("get_odds", "/odds", "Prices, filtered. For the best price of each selection use get_best_odds.",
         ("sport", "league", "sportsbook", "location", "market",
          "event", "team", "live", "date", "q", "min_odds", "max_odds",
          "is_main_line", "player_name", "sort"), tool_answers.price, notes=(_PRICES, _TIME)),
    Tool("get_odds_delta", "/odds/delta", "Prices that changed since a time.",
         ("since", "sport", "league", "sportsbook", "market", "event", "live"), tool_answers.price, notes=(_PRICES,
         _TIME)),
    Tool("get_best_odds", "/odds/best", "The best price of each selection that can be bet, over all books.",
         ("sport", "league", "sportsbook", "location", "market",
          "event", "team", "live"), tool_answers.price, notes=(_PRICES, _TIME)),
    Tool("compare_odds", "/odds/comparison", "All books' prices of one event side by side, the best first.",
         ("event", "market"), rows=tool_answers.comparison, notes=(_PRICES, _TIME), only={"market": "main"}),
    Tool("get_closing_lines", "/odds/closing", "Each book's last price before an event began.",
         ("event_id", "sportsbook", "market"), rows=tool_answers.closing,
         notes=("fair_probability is the reference's.",)),
    Tool("get_futures_odds", "/futures/odds", "Prices of futures, such as who wins a league.",
         ("sport", "league", "market_id", "future_type", "sportsbook", "selection", "q"), tool_answers.future,
         notes=(_EDGE, _TIME)),
    Tool("compare_futures_lines", "/futures/odds", "All books' prices of futures side by side, the best first.",
         ("sport", "league", "market_id", "future_type", "selection", "q"), rows=tool_answers.futures_lines,
         notes=(_TIME,)),
    Tool("find_ev_opportunities", "/opportunities/ev",
         "Prices above the fair price, which is estimated for the close from all other books; best first.",
         ("sport", "league", "sportsbook", "location", "stake", "market",
          "event", "live", "min_ev", "max_ev", "min_odds", "max_odds",
          "max_odds_age", "date_range", "is_player_prop", "min_still_there", "include", "sort"),
         tool_answers.positive, notes=(
              _EDGE, "full_kelly_fraction is a share of the bankroll; uncertain_kelly_fraction allows for its error.",
              "ev_low_percent to ev_high_percent is the 90 % range of the EV at the close.",
              "still_there_probability: that the price stands ten minutes on; null in play.",
              "`flags` say what makes an EV less certain: " + ", ".join(catalog.EV_FLAGS) + ".", _STALE,
              "`reference` is the source of the fair price; explain_opportunity, with id and event_id, has details.")),
    Tool("find_arbitrage", "/opportunities/arbitrage",
         "Best prices at two or more books that guarantee a profit if every leg is placed at its price.",
         ("sport", "league", "sportsbook", "location", "stake", "market",
          "event", "live", "min_profit", "max_odds_age", "date_range",
          "group", "terms", "sort"), tool_answers.arbitrage, notes=(
              "profit_percent is of the total stake; stake_percent of the legs sum to 100.", _EDGE, _STALE,
              "A price may change or be limited before it is bet; the other legs are then ordinary bets.", _TERMS)),
    Tool("find_middles", "/opportunities/middles",
         "Two bets on different lines that both win if the result falls between.",
         ("sport", "league", "sportsbook", "location", "stake", "market",
          "event", "live", "min_ev", "min_size", "date_range", "terms",
          "sort"), tool_answers.middle, notes=(
             "Money is per 100 staked on both bets together; worst_case_per_100_staked below 0 is a loss.", _EDGE,
             _STALE, _TERMS)),
    Tool("find_low_hold", "/opportunities/low_hold", "Markets with the lowest hold at the best prices.",
         ("sport", "league", "sportsbook", "location", "stake", "market",
          "event", "live", "max_hold", "date_range", "terms", "sort"),
         tool_answers.low_hold, notes=(
             "hold_percent is the loss from betting all sides at these prices; below 0 it is an arbitrage.", _EDGE,
             _STALE, _TERMS)),
    Tool("get_account_info", "/account", "This key's tier, features and limits.", notes=("max_books 999 means all.",)),
    Tool("explain_opportunity", local.EXPLAIN,
         "Explains one opportunity: the reference, fair probabilities, every book's price, and prices not used, with "
         "reasons.", ("id", "event_id", "sportsbook", "location", "stake"), notes=(
             _EDGE, "role: `leg` is part of the opportunity, `reference` is the source of the fair price, `offer` can "
             "be bet, `set aside` is rejected.")),
    Tool("devig", local.DEVIG, "Fair probabilities of one market: removes the book's margin from its odds.",
         ("odds", "format", "method"),
         notes=("Pass one book's odds of all outcomes of the market.", _EDGE)),
    Tool("kelly", local.KELLY, "Kelly stake of one bet.",
         ("probability", "odds", "format", "fraction", "bankroll"),
         notes=("stake_fraction is a share of the bankroll, after `fraction`.", _EDGE)),
    Tool("what_was_rejected", local.REJECTED,
         "Prices that are on the board but are not used, with the reason: errors, stale prices, wrong lines. Give at "
         "least one of event, sport, league, market or sportsbook.",
         ("event", "sport", "league", "market", "sportsbook"), tool_answers.price, notes=(_PRICES, _TIME)),
)  # fmt: skip


def _registered(kind: Kind) -> Tool:
    """The tool of a kind that was registered."""
    args = (
        "sport", "league", "sportsbook", "location", "stake", "market", "event", "live", kind.threshold.listed,
        "max_odds_age", "date_range", "sort",
    )  # fmt: skip
    return Tool(
        f"find_{kind.name}", f"/opportunities/{kind.name}", kind.about, args, tool_answers.registered(kind),
        notes=(f"{kind.formula}.", _STALE),
    )  # fmt: skip


_LISTED = {tool.endpoint for tool in _PUBLISHED}
TOOLS = (
    *_PUBLISHED, *(_registered(kind) for kind in KINDS.values() if f"/opportunities/{kind.name}" not in _LISTED),
)  # fmt: skip
BY_NAME = {tool.name: tool for tool in TOOLS}


def schema(tool: Tool, endpoint: Endpoint) -> dict[str, Any]:
    """The arguments of a tool as JSON Schema."""
    own = {name: endpoint.query.declared[name] for name in tool.args}
    properties: dict[str, Any] = {}
    for name, arg in (own | (RowRange.declared if tool.paged else {})).items():
        kind = {key: value for key, value in arg.with_default().items() if key != "pattern"}
        properties[name] = {**kind, "description": arg.doc}
        if name in tool.only:
            properties[name]["default"] = tool.only[name]
    required = [name for name, arg in own.items() if arg.required]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def query(tool: Tool, endpoint: Endpoint, arguments: Mapping[str, Any]) -> tuple[dict[str, str], RowRange]:
    """Convert the arguments of a call to a query of the endpoint, and the range of the rows to show.

    Raises `Problem` 400 for an argument that the tool does not have, or of another type.
    """
    allowed = {*tool.args, *(("limit", "offset") if tool.paged else ())}
    if strange := sorted(set(arguments) - allowed):
        raise invalid(
            f"unknown argument {quoted(strange[0])} of {tool.name}; allowed: {', '.join(sorted(allowed)) or 'none'}"
        )
    out = {name: str(value) for name, value in tool.only.items()}
    for name, value in arguments.items():
        if value is not None:
            out[name] = text_of(name, value)
    rows = RowRange()
    for name in [name for name in RowRange.declared if name in out]:
        setattr(rows, name, RowRange.declared.parse_value(name, out.pop(name)))
    if "limit" in endpoint.query.declared:
        # Rows that are joined here need all of a page.
        out |= (
            {"limit": str(MOST_LIMIT)} if tool.shape is None else {"limit": str(rows.limit), "offset": str(rows.offset)}
        )
    return out, rows


def answer(tool: Tool, result: Any, row_range: RowRange, now: datetime, delay: int) -> str:
    """An endpoint's answer as JSON for a model; `now` is the time of the board."""
    limit, offset = row_range.limit, row_range.offset
    out: dict[str, Any] = {"now": now.isoformat(timespec="seconds").replace("+00:00", "Z")}
    if delay:
        out["data_is_late_by_seconds"] = delay
    if tool.shape is not None:
        rows = [tool.shape(row, now) for row in result["data"]]
    elif tool.rows is not None:
        rows = tool.rows(result["data"], now)
    else:
        return _fitting(out | (result if isinstance(tool.endpoint, Endpoint) else result["data"]), [], 0, 0, tool)
    meta, pages = result.get("meta", {}), result.get("pagination")
    if pages is None or tool.shape is None:  # the endpoint gives all rows
        total, rows = len(rows), rows[offset : offset + limit]
    else:
        total = meta.get("total", len(rows))
    if unknown := meta.get("unknown"):
        out["unknown"] = unknown
    if reason := meta.get("reason"):
        out["reason"] = reason
    return _fitting(out, rows, offset, total, tool)


def _fitting(out: dict[str, Any], rows: list[Row], offset: int, total: int, tool: Tool) -> str:
    """The answer with as many rows as fit, and how to get more."""
    while True:
        body = dict(out)
        if tool.paged:
            body |= {"rows": rows, "shown": len(rows), "total": total}
            if offset + len(rows) < total:
                body["more"] = f"call {tool.name} again with offset={offset + len(rows)}"
        if tool.notes:
            body["notes"] = list(tool.notes)
        text = msgspec.json.encode(body).decode()
        if len(text) <= MOST_BYTES or not rows:
            return text
        rows = rows[: max(1, len(rows) // 2)] if len(rows) > 1 else []


def described(tools: Iterable[Tool] = TOOLS) -> str:
    names = ", ".join(tool.name for tool in tools)
    return (
        "Odds of many sportsbooks, and which of them are worth betting. Start with get_events or a find_ tool, and "
        "pass the ids that it returns to other tools. A result is one page; `more` says how to get the next one. If "
        f"there are no rows, check `unknown`: it lists ids that do not exist. {_EDGE} Tools: {names}."
    )
