"""`oddsengine watch`: sources of opportunities and prices, and the terminal application."""

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import polars as pl
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.widgets import DataTable, Footer, Header, Input, Static, TabbedContent, TabPane

from oddsengine.catalog import normalise
from oddsengine.detection.finders import find_all, rejected
from oddsengine.feeds.reading import read_odds
from oddsengine.live.engine import Engine
from oddsengine.maths.odds import format_american
from oddsengine.tables.schema import RENAMED, OddsWarning
from oddsengine.tape import Tape, engine_for, play

KINDS = {"ev": "+EV", "arbitrage": "Arbitrage", "low_hold": "Low hold", "middles": "Middles"}
_VALUES = {
    "ev": "ev_percentage",
    "arbitrage": "profit_percent",
    "low_hold": "hold_percentage",
    "middles": "expected_value",
}
_LEAST: dict[str, Any] = dict(min_ev=0.0, min_profit=0.0, max_hold=2.0, min_middle_ev=0.0)
_PATHS = {"ev": "ev?min_ev=0", "arbitrage": "arbitrage?min_profit=0", "low_hold": "low_hold?max_hold=2",
          "middles": "middles?min_ev=0&sort=ev"}  # fmt: skip
_TABS = {**KINDS, "board": "Board"}
_MOST_ROWS, _MOST_BOOKS = 300, 12
Rows = Sequence[Mapping[str, Any]]


class OpenLists(NamedTuple):
    """Opportunities at one time."""

    title: str
    kinds: Mapping[str, Rows]


class OpportunitySource(Protocol):
    """A source of opportunities; called from threads, one call at a time."""

    def snapshot(self) -> OpenLists:
        """Return the current opportunities."""

    def prices(self, event: str) -> Rows:
        """Return every price of an event."""


class FileSource:
    """A file of prices, read again when it changes."""

    def __init__(self, path: str, books: Sequence[str] | None, columns: Mapping[str, str] | None = None) -> None:
        self._path, self._books, self._columns = path, books, columns
        self._changed = -1.0
        self._shot = OpenLists(path, {})
        self._table = pl.DataFrame()

    def snapshot(self) -> OpenLists:
        """Return the opportunities as of the file's newest time."""
        changed = os.path.getmtime(self._path) if os.path.isfile(self._path) else 0.0
        if changed != self._changed:
            self._changed = changed
            table = read_odds(self._path, columns=self._columns)
            with warnings.catch_warnings(action="ignore", category=OddsWarning):  # lists may be empty
                result = find_all(table, books=self._books, **_LEAST)
            refused = rejected(table)["row"].unique().to_list()
            self._table = table.filter(~pl.col("row").is_in(refused))
            self._shot = OpenLists(self._path, {kind: getattr(result, kind).to_dicts() for kind in KINDS})
        return self._shot

    def prices(self, event: str) -> Rows:
        return self._table.filter(pl.col("event_id") == event).to_dicts()


class TapeSource:
    """A tape replayed in a thread of its own; an infinite speed is allowed."""

    def __init__(self, path: str, speed: float, books: Sequence[str] | None) -> None:
        tape = Tape(path)
        self._engine: Engine = engine_for(tape)
        self._view = self._engine.view(books, **_LEAST)
        self._ended, self.closing = False, threading.Event()
        self._speed, self._path = speed, path
        self._thread = threading.Thread(target=self._run, args=(tape,), daemon=True)
        self._thread.start()

    def _run(self, tape: Tape) -> None:
        first: tuple[float, float] | None = None  # tape time and wall time
        for _, update in play(tape, self._engine):
            at = update.now / 1e6
            first = first or (at, time.monotonic())
            due = (at - first[0]) / self._speed - (time.monotonic() - first[1])
            if self.closing.wait(max(0.0, due)):
                return
        self._ended = True

    def snapshot(self) -> OpenLists:
        """Return the opportunities at the current position of the tape."""
        result, now = self._view.opportunities(), self._engine.now
        title = f"{self._path}  {'' if now is None else f'{now:%Y-%m-%d %H:%M:%S}'}{'  ended' if self._ended else ''}"
        return OpenLists(title, {kind: getattr(result, kind).to_dicts() for kind in KINDS})

    def prices(self, event: str) -> Rows:
        table = self._engine.table().filter(event_id=event)
        return table.filter(~pl.arange(1, pl.len() + 1).is_in(rejected(table)["row"].unique().to_list())).to_dicts()


class NodeSource:
    """A node polled over HTTP; `client` is an `httpx2.Client` with its address and key."""

    def __init__(self, client: Any, books: Sequence[str] | None) -> None:
        self._client, self._books = client, f"&sportsbook={','.join(books)}" if books else ""

    def _data(self, path: str) -> Any:
        answer = self._client.get(path)
        if answer.status_code == 403:  # not included in the key's tier
            return []
        if answer.status_code != 200:
            raise ValueError(answer.json()["error"]["message"])
        return answer.json()["data"]

    def snapshot(self) -> OpenLists:
        """Return the first 200 opportunities of each kind."""
        lists = {kind: self._data(f"/opportunities/{path}{self._books}&limit=200") for kind, path in _PATHS.items()}
        return OpenLists(str(self._client.base_url), {kind: list(map(_own, rows)) for kind, rows in lists.items()})

    def prices(self, event: str) -> Rows:
        return [row for rows in self._data(f"/odds/comparison?event={event}").values() for row in rows]


# ---- rows ----


def _own(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a node with the names of a result frame."""
    out = {RENAMED.get(name, name): value for name, value in row.items()}
    if isinstance(odds := out.pop("odds", None), Mapping):
        out |= {"odds_american": odds["american"], "odds_decimal": odds["decimal"]}
    return {name: _own(value) if isinstance(value, Mapping) else value for name, value in out.items()}


def legs(kind: str, row: Mapping[str, Any]) -> list[tuple[str, str, float]]:
    """Return selection, book and American odds of each leg."""
    if kind == "ev":
        return [(row["selection"], row["sportsbook"], row["odds_american"])]
    if kind == "arbitrage":
        return [(leg["selection"], leg["sportsbook"], leg["odds_american"]) for leg in row["legs"]]
    sides = [row[name] for name in ("side1", "side2", "side3") if row.get(name)]
    return [
        (side["selection"], side.get("sportsbook") or ", ".join(side["books"]), side["odds_american"]) for side in sides
    ]


def cells(kind: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    bets = "\n".join(f"{selection} {format_american(odds)} {book}" for selection, book, odds in legs(kind, row))
    fair: tuple[str, ...] = ()
    if kind == "ev":
        low, high = row.get("ev_low"), row.get("ev_high")
        by = "the close" if row.get("reference") == "close" else row["sharp_book"]
        fair = by, "" if low is None else f"{low:.1f} to {high:.1f} %"
    when = "in play" if row["is_live"] else str(row.get("event_start_time") or "")[:16].replace("T", " ")
    return f"{row[_VALUES[kind]]:.2f} %", bets, row["event_name"], row["market_type"], *fair, when


def fits(row: Sequence[str], words: Sequence[str]) -> bool:
    """Whether a row matches all words; `>2` is a minimum, `<0` a maximum."""
    text, value = " ".join(row).lower(), float(row[0].partition(" ")[0])
    for word in words:
        if word[:1] in "<>" and word[1:].replace(".", "", 1).replace("-", "", 1).isdigit():
            if (value < float(word[1:])) == (word[0] == ">"):
                return False
        elif word not in text:
            return False
    return True


def board(rows: Rows) -> tuple[list[str], list[tuple[str, ...]]]:
    """Arrange the prices of an event side by side: headings, and a line per selection with the best price starred.

    Books name a selection differently: it is identified by its outcome, or else by normalised name and line.
    """
    counts: dict[str, int] = {}
    lines: dict[tuple[Any, ...], dict[str, float]] = {}
    names: dict[tuple[Any, ...], str] = {}
    for row in rows:
        if row.get("rejection") or row.get("is_active") is False:
            continue
        counts[row["sportsbook"]] = counts.get(row["sportsbook"], 0) + 1
        line, player = row.get("line"), row.get("player_name") or ""
        worded = normalise(row["selection"].removesuffix("" if line is None else f"{line:g}"))
        key = row["market_type"], normalise(player), row.get("selection_type") or worded, line
        names.setdefault(
            key, f"{player} {row['selection']}" if player and player not in row["selection"] else row["selection"]
        )
        lines.setdefault(key, {})[row["sportsbook"]] = float(row["odds_decimal"])
    books = sorted(counts, key=lambda book: (-counts[book], book))[:_MOST_BOOKS]
    out = []
    for key, prices in sorted(lines.items(), key=lambda item: tuple(map(str, item[0]))):
        (market, _, _, line), best = key, max(prices.values())
        line_said = "" if line is None else f"{line:g}"
        cells_ = [f"{'*' if prices[b] == best else ''}{prices[b]:.2f}" if b in prices else "" for b in books]
        out.append((market, names[key], line_said, f"{best:.2f}", *cells_))
    return ["Market", "Selection", "Line", "Best", *books], out


# ---- application ----


class WatchApp(App[None]):
    """Lists of the four kinds, a board, and filters."""

    TITLE = "oddsengine"
    CSS = """
    #filter { height: 3; } #tabs { height: 1fr; } TabPane { padding: 0; height: 1fr; } DataTable { height: 1fr; }
    #state { height: 1; color: $text-muted; padding: 0 1; }
    """
    BINDINGS: ClassVar = [
        *(Binding(str(at), f"tab('{kind}')", name) for at, (kind, name) in enumerate(_TABS.items(), 1)),
        Binding("slash", "search", "Filter"), Binding("p", "pause", "Pause"), Binding("q", "quit", "Quit"),
        Binding("escape", "clear", "Clear", show=False),
    ]  # fmt: skip

    def __init__(self, source: OpportunitySource, every: float, words: str = "") -> None:
        super().__init__()
        self._source, self._every, self._first_words = source, every, words
        self._shot = OpenLists("", {})
        self._event, self._paused, self._failed = "", False, False
        self._events: dict[str, str] = {}  # event of each row's key
        self._asking = threading.Lock()

    def compose(self) -> ComposeResult:
        yield Header()
        yield Input(self._first_words, placeholder="Filter: words, >2 for at least 2 %", id="filter")
        with TabbedContent(id="tabs"):
            for kind, name in KINDS.items():
                with TabPane(name, id=kind):
                    yield DataTable(id=f"list-{kind}", cursor_type="row", zebra_stripes=True)
            with TabPane("Board", id="board"):
                yield DataTable(id="prices", zebra_stripes=True)
        yield Static("Reading …", id="state")
        yield Footer()

    def on_mount(self) -> None:
        for kind in KINDS:
            fair = ("Fair by", "EV range") if kind == "ev" else ()
            self._list(kind).add_columns("Value", "Bet", "Event", "Market", *fair, "Starts")
        self._list("ev").focus()
        self._look()
        self.set_interval(self._every, self._look)

    def _list(self, kind: str) -> DataTable[Any]:
        return self.query_one(f"#list-{kind}", DataTable)

    def _look(self) -> None:
        if not self._paused:
            self.run_worker(self._read, thread=True, exclusive=False)

    def _read(self) -> None:
        """Poll the source in a thread, one request at a time."""
        if not self._asking.acquire(blocking=False):
            return
        try:
            snapshot = self._source.snapshot()
            prices = self._source.prices(self._event) if self._event else ()
        except Exception as error:
            self.call_from_thread(self._if_open, self._fail, f"{type(error).__name__}: {error}")
        else:
            self.call_from_thread(self._if_open, self._show, snapshot, prices)
        finally:
            self._asking.release()

    def _if_open(self, act: Callable[..., None], *words: Any) -> None:
        """Act unless the screen is being closed, while the last poll was under way."""
        if self.query("#state"):
            act(*words)

    def _fail(self, text: str) -> None:
        self._failed = True
        self._state(text)

    def _state(self, text: str) -> None:
        self.query_one("#state", Static).update(Text(text))

    def _show(self, snapshot: OpenLists, prices: Rows) -> None:
        if snapshot != self._shot or self._failed:  # filling the tables takes much longer than comparing
            self._shot, self._failed = snapshot, False
            self.sub_title = snapshot.title
            self._lists()
        if prices:
            self._board(prices)

    def _lists(self) -> None:
        words = self.query_one("#filter", Input).value.lower().split()
        tabs, titles = self.query_one("#tabs", TabbedContent), []
        for kind, name in KINDS.items():
            rows = sorted(
                self._shot.kinds.get(kind, ()), key=lambda row: row[_VALUES[kind]], reverse=kind != "low_hold"
            )
            visible = [(row, text) for row in rows if fits(text := cells(kind, row), words)]
            self._fill(self._list(kind), kind, visible[:_MOST_ROWS])
            tabs.get_tab(kind).label = f"{name} {len(visible)}"
            titles.append(f"{name} {len(visible)} of {len(rows)}")
        self._state(("Paused   " if self._paused else "") + "   ".join(titles))

    def _fill(
        self, table: DataTable[Any], kind: str, rows: Iterable[tuple[Mapping[str, Any], tuple[str, ...]]]
    ) -> None:
        """Fill the table; the cursor stays on its opportunity."""
        at = table.cursor_row
        key = table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value if table.row_count else None
        scroll = table.scroll_y
        table.clear()
        for row, text in rows:
            self._events[row["id"]] = row["event_id"]
            good = (row[_VALUES[kind]] > 0) == (kind != "low_hold")
            value = Text(text[0], "bold green" if good else "bold", justify="right")
            table.add_row(value, *map(Text, text[1:]), key=row["id"], height=max(1, text[1].count("\n") + 1))
        if table.row_count:
            place = table.get_row_index(key) if key is not None and key in table.rows else min(at, table.row_count - 1)
            table.move_cursor(row=place, animate=False, scroll=False)
            table.scroll_to(y=scroll, animate=False)

    def _board(self, prices: Rows) -> None:
        heads, lines = board(prices)
        table = self.query_one("#prices", DataTable)
        table.clear(columns=True)
        table.add_columns(*heads)
        table.add_rows([tuple(Text(cell, "bold green" if cell[:1] == "*" else "") for cell in line) for line in lines])

    # ---- events ----

    def on_input_changed(self, _: Input.Changed) -> None:
        self._lists()

    def on_input_submitted(self, _: Input.Submitted) -> None:
        self.action_tab(str(self.query_one("#tabs", TabbedContent).active))

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        key = event.row_key.value
        if key in self._events:
            self._event = self._events[key]
            self.action_tab("board")
            self._look()

    def action_tab(self, kind: str) -> None:
        self.query_one("#tabs", TabbedContent).active = kind
        self.query_one("#prices" if kind == "board" else f"#list-{kind}", DataTable).focus()

    def action_search(self) -> None:
        self.query_one("#filter", Input).focus()

    def action_clear(self) -> None:
        self.query_one("#filter", Input).value = ""
        self.action_tab(str(self.query_one("#tabs", TabbedContent).active))

    def action_pause(self) -> None:
        self._paused = not self._paused
        self._lists()
        self._look()
