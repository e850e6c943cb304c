"""Share of a core that the page uses in Chromium: 1,000 opportunities, and an odds screen of 16 games by 16 books.

    python benchmarks/page_updates.py [list|screen] [SECONDS]

A server of its own sends the stream, with 10 updates per second of a tenth of the rows, and the screen, which the page
asks for every 2 s, with the prices of two seconds of such updates. Processor time is what counts, not the
clock: other work on the machine changes it little. A task of the main thread
that takes longer than 100 ms drops a frame.
"""

import asyncio
import json
import random
import shutil
import sys
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import psutil
import uvicorn
from playwright.sync_api import sync_playwright
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, StreamingResponse
from starlette.routing import Route

from oddsengine_service.http import pages

ROWS, EVERY_S, SHARE = 1000, 0.1, 0.1
GAMES, BOOKS = 16, 16
_DRAW = random.Random(7)
_BOOKS = ("bet365", "fanduel", "betrivers", "unibet")
_NOW = datetime.now(UTC)


def row(at: int) -> dict[str, Any]:
    """A +EV row with random figures."""
    ev = round(_DRAW.uniform(0.5, 9.0), 2)
    return {
        "id": f"ev{at:05}", "game_id": f"g{at % 60}", "ev_percentage": ev, "odds_american": 100 + at % 300,
        "odds_decimal": 2 + at % 300 / 100, "no_vig_odds": 105.0, "selection": f"Side {at}", "market": "moneyline",
        "line": None, "sportsbook": _BOOKS[at % 4], "game": f"Guests {at % 60} @ Hosts",
        "sport": "soccer", "league": "x", "start_time": (_NOW + timedelta(hours=2)).isoformat(), "is_live": False,
        "confidence_score": 60, "kelly_percent": 0.02, "kelly_shrunk": 0.01, "player_name": None, "reference": "close",
        "ev_low": ev - 3, "ev_high": ev + 3, "prob_positive": 0.9, "flags": [], "sharp_book": "pinnacle",
        "devig_method": "power", "book_count": 12, "possibly_stale": False, "is_alternate_line": False,
        "market_segment": "full_game", "selection_type": "home", "detected_at": _NOW.isoformat(),
        "oldest_odds_age_seconds": 5.0, "odds_id": f"o{at}",
    }  # fmt: skip


async def stream(_: Request) -> StreamingResponse:
    """Send all rows, then a tenth of them repeatedly."""

    def event(name: str, payload: Any) -> str:
        return f"event: {name}\ndata: {json.dumps(payload)}\n\n"

    async def events() -> Any:
        yield event("connected", {}) + event("ev:detected", [row(at) for at in range(ROWS)])
        yield event("snapshot:complete", {"status": "ready", "books": [], "total_odds": 0})
        while True:
            await asyncio.sleep(EVERY_S)
            yield event("ev:detected", [row(at) for at in _DRAW.sample(range(ROWS), round(ROWS * SHARE))])

    return StreamingResponse(events(), media_type="text/event-stream")


def screen_game(at: int) -> dict[str, Any]:
    """A game of the odds screen with random prices of each book."""
    start = (_NOW + timedelta(hours=at + 1)).isoformat()

    def outcome(side: str) -> dict[str, Any]:
        prices: dict[str, dict[str, Any]] = {
            book: {
                "id": f"{at}{side}{book}", "odds_american": 100 + (cents := _DRAW.randrange(20)),
                "odds_decimal": 2 + cents / 100, "line": None, "ev_percentage": -2.0 + cents / 8, "rejection": None,
                "last_seen_at": _NOW.isoformat(), "is_active": True,
            }
            for book in (f"book{each:02}" for each in range(BOOKS))
        }  # fmt: skip
        best = max(prices, key=lambda book: prices[book]["odds_decimal"])
        return {
            "selection": f"{side} {at}", "selection_type": side, "line": None, "best": [best], "prices": prices,
            "fair_probability": 0.5, "fair_odds_american": 100.0,
        }  # fmt: skip

    market = {
        "market_type": "moneyline", "market_segment": "full_game", "player_name": None, "team_side": None, "line": None,
        "hold_percentage": 1.0, "holds": {f"book{each:02}": 4.5 for each in range(BOOKS)},
        "outcomes": [outcome("away"), outcome("home")],
    }  # fmt: skip
    return {
        "event_id": f"e{at}", "event_name": f"away {at} @ home {at}", "sport": "soccer", "league": "x",
        "home_team": f"home {at}", "away_team": f"away {at}", "event_start_time": start, "is_live": False,
        "markets": [market],
    }  # fmt: skip


async def screen(_: Request) -> JSONResponse:
    """All games, with new prices."""
    games = [screen_game(at) for at in range(GAMES)]
    return JSONResponse({"data": games, "pagination": {"next_offset": None}, "meta": {}})


async def events(_: Request) -> JSONResponse:
    """The games that there are."""
    found = [{"id": f"e{at}", "sport": "soccer", "league": "x", "home_team": "h", "away_team": "a", "is_live": False,
              "start_time": _NOW.isoformat()} for at in range(GAMES)]  # fmt: skip
    return JSONResponse({"data": found, "pagination": {"next_offset": None}})


async def markets(_: Request) -> JSONResponse:
    """The market of the screen."""
    return JSONResponse({"data": [{"id": "moneyline", "name": "Moneyline", "sports": ["soccer"]}]})


async def nothing(_: Request) -> JSONResponse:
    """The rest of the API."""
    return JSONResponse({"error": {"code": "not_found", "message": "not here"}}, 404)


def main() -> None:
    """Measure, and print one line."""
    of_screen = sys.argv[1:2] == ["screen"]
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 20.0
    live = pages.live("/api/v1", "demo")
    app = Starlette(
        routes=[
            Route("/", lambda _: HTMLResponse(live.html, headers={"content-security-policy": live.policy})),
            Route("/api/v1/stream/opportunities", stream), Route("/api/v1/odds/screen", screen),
            Route("/api/v1/events", events), Route("/api/v1/markets", markets), Route("/{rest:path}", nothing),
        ]
    )  # fmt: skip
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        pass
    port = server.servers[0].sockets[0].getsockname()[1]
    with sync_playwright() as playwright:
        path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        page.goto(f"http://127.0.0.1:{port}/")
        page.wait_for_selector("#list tbody tr:not(.empty)")
        if of_screen:
            page.click("#tab-board")
            page.wait_for_selector("#screen .outcome")
        page.wait_for_timeout(3000)
        cdp = page.context.new_cdp_session(page)
        cdp.send("Performance.enable", {"timeDomain": "threadTicks"})
        browser.start_tracing(page=page, categories=["toplevel", "disabled-by-default-devtools.timeline"])

        def spent() -> tuple[float, float]:
            metrics = {each["name"]: each["value"] for each in cdp.send("Performance.getMetrics")["metrics"]}
            mine = [p for p in psutil.Process().children(recursive=True) if "--type=renderer" in " ".join(p.cmdline())]
            times = [p.cpu_times() for p in mine]
            return metrics["TaskDuration"], sum(t.user + t.system for t in times)

        before = spent()
        page.wait_for_timeout(seconds * 1000)
        after = spent()
        trace = json.loads(browser.stop_tracing())["traceEvents"]
        main = {(e["pid"], e["tid"]) for e in trace if e.get("args", {}).get("name") == "CrRendererMain"}
        tasks = [e["tdur"] / 1000 for e in trace if "tdur" in e and (e["pid"], e["tid"]) in main]
        longest, dropped = max(tasks), sum(each > 100.0 for each in tasks)
        task, cpu = ((b - a) / seconds for a, b in zip(before, after, strict=True))
        print(
            f"{f'{GAMES} games by {BOOKS} books and ' if of_screen else ''}{ROWS} rows, "
            f"{1 / EVERY_S:g} updates/s of {SHARE:.0%}: main thread {task:.1%} of a core, renderer "
            f"{cpu:.1%}; tasks over 100 ms: {dropped} of {len(tasks)}, longest {longest:.0f} ms"
        )
        browser.close()
    server.should_exit = True


if __name__ == "__main__":
    main()
