"""`format=csv` and `format=arrow`: the rows of the page in JSON, with real types in Arrow."""

import io
from datetime import UTC, datetime
from functools import cache
from typing import Any

import polars as pl
import pytest
from support.handler_calls import answer, ask, found, node, world
from support.service_running import Running
from support.tables import assert_tables

from oddsengine import catalog
from oddsengine.live.engine import Engine
from oddsengine_service.errors import Problem
from oddsengine_service.http.tables import Table
from oddsengine_service.node import Node
from oddsengine_service.routing import ENDPOINTS
from oddsengine_service.wire.odds_response import Odds

TIME = pl.Datetime("us", "UTC")
ODDS = found(ENDPOINTS, "/odds")
LISTS: dict[str, dict[str, Any]] = {
    "/odds": {"sort": "-odds_decimal"}, "/odds/best": {"market": "main"}, "/opportunities/ev": {"min_ev": -5},
    "/opportunities/middles": {"min_ev": -5}, "/opportunities/low_hold": {"max_hold": 8},
}  # fmt: skip


@cache
def here() -> Node:
    return node(world(11, 2, events=6, hazards=True, live=0.3))


@pytest.mark.parametrize("path", LISTS)
def test_tables_have_the_rows_and_values_of_the_page(path: str) -> None:
    endpoint, query = found(ENDPOINTS, path), {**LISTS[path], "limit": 40, "offset": 3}
    page = answer(endpoint, here(), query)
    assert len(page["data"]) > 5
    assert_tables(endpoint, here(), query, page["data"])
    headers = dict(answer(endpoint, here(), {**query, "format": "arrow"}).headers)
    more = {name: page["pagination"].get(name) for name in ("next_offset", "next_cursor")}
    told = {name: headers.get(f"x-{name.replace('_', '-')}") for name in more}
    assert told == {name: None if value is None else str(value) for name, value in more.items()}
    assert headers["x-total-count"] == str(page["meta"]["total"])


def test_fields_links_of_a_state_and_an_event() -> None:
    query = {"fields": "rejection,sportsbook,deep_link", "state": "nj", "limit": 30}
    rows = answer(ODDS, here(), query)["data"]
    frame = assert_tables(ODDS, here(), query, rows)
    assert frame.columns == ["rejection_guard", "rejection_reason", "sportsbook", "deep_link"]
    assert {"rejection", "sportsbook"} <= {name for row in rows for name, value in row.items() if value is not None}
    event = answer(ODDS, here(), {"limit": 1})["data"][0]["event_id"]
    of_event = found(ENDPOINTS, "/events/{eventId}/odds")
    path = {"eventId": event}
    assert_tables(of_event, here(), {}, answer(of_event, here(), {}, path=path)["data"], path=path)


def test_types_are_those_of_the_fields_also_without_rows() -> None:
    now = datetime(2026, 2, 8, 12, tzinfo=UTC)
    engine = Engine()
    price = {
        "event_id": "e", "sportsbook": "betfair", "market_type": "moneyline", "selection": "A", "home_team": "A",
        "away_team": "B", "sport": "tennis", "odds_decimal": 2.0, "last_seen_at": now, "event_start_time": now,
        "levels": "2.0:12.5 1.95:40", "max_bet": 12.5,
    }  # fmt: skip
    engine.step([price], now)
    query = {"event": "e"}
    whole = assert_tables(ODDS, node(engine), query, answer(ODDS, node(engine), query)["data"])
    none = assert_tables(ODDS, node(engine), {"event": "f"}, [])
    assert whole.schema == none.schema
    assert (whole.height, none.height) == (1, 0)
    assert [whole.schema[name] for name in ("id", "line", "event_start_time", "last_seen_at", "is_main_line")] == [
        pl.String, pl.Float64, TIME, TIME, pl.Boolean,
    ]  # fmt: skip
    assert whole.schema["levels"] == pl.List(pl.Struct({"odds_decimal": pl.Float64, "stake": pl.Float64}))
    counts = assert_tables(found(ENDPOINTS, "/opportunities/ev"), node(engine), {}, [])
    assert [counts.schema[name] for name in ("independent_books", "flags")] == [pl.Int64, pl.List(pl.String)]


def test_arbitrages_have_the_columns_of_their_csv() -> None:
    endpoint, query = found(ENDPOINTS, "/opportunities/arbitrage"), {"min_profit": -20, "limit": 5}
    got, text = (answer(endpoint, here(), {**query, "format": form}) for form in ("arrow", "csv"))
    frame, told = pl.read_ipc_stream(got.body), pl.read_csv(io.BytesIO(text.body))
    assert frame.columns == told.columns
    assert [frame.schema[name] for name in ("profit%", "odds1", "is_live", "warnings", "detected_at")] == [
        pl.Float64, pl.Float64, pl.Boolean, pl.List(pl.String), TIME,
    ]  # fmt: skip
    plain = frame.with_columns(pl.col("detected_at").dt.strftime("%Y-%m-%dT%H:%M:%S.%6fZ"))
    same = ["event", "profit%", "book1", "odds1", "stake2%", "is_live", "detected_at"]
    assert plain.select(same).rows() == told.cast({"odds1": pl.Float64}).select(same).rows()
    assert plain.height >= 5


def test_groups_are_json_only() -> None:
    for form in ("csv", "arrow"):
        with pytest.raises(Problem, match=f"format must be json with group_by, got '{form}'"):
            ODDS.response(ask(ODDS, here(), {"group_by": "event", "format": form}))


def test_every_endpoint_with_the_format_has_columns_of_its_own() -> None:
    tables = [each for each in ENDPOINTS if "format" in each.query.declared and "arrow" in _choices(each)]
    assert len(tables) >= 12
    for each in ENDPOINTS:
        assert ("format" in each.query.declared and "arrow" in _choices(each)) == (each in tables)
    names = [column.name for column in Table("odds", Odds).columns]
    assert len(names) == len(set(names)) == len(Odds.__struct_fields__) + 1


def _choices(endpoint: Any) -> list[str]:
    return next(field.choices for field in endpoint.query.declared.all if field.name == "format")


# ---- over HTTP ----


def test_pages_of_arrow_by_cursor_are_all_rows(service: Running) -> None:
    with service.client() as client:
        every = client.get("/odds?limit=1").json()["meta"]["total"]
        ids = list[str]()
        query = {"format": "arrow", "limit": "200", "fields": "id,last_seen_at"}
        while True:
            answer_ = client.get("/odds", params=query)
            assert answer_.headers["content-type"] == "application/vnd.apache.arrow.stream"
            assert answer_.headers["content-disposition"].endswith('.arrows"')
            frame = pl.read_ipc_stream(answer_.content)
            assert frame.schema == {"id": pl.String, "last_seen_at": TIME}
            ids += frame["id"].to_list()
            if "x-next-cursor" not in answer_.headers:
                break
            query = {**query, "cursor": answer_.headers["x-next-cursor"]}
        assert len(ids) == len(set(ids)) == every > 200
        tag = client.get("/odds", params=query).headers["etag"]
        assert client.get("/odds", params=query, headers={"If-None-Match": tag}).status_code == 304


def test_a_table_keeps_the_rules_of_json(service: Running) -> None:
    with service.client() as client:
        for path, status, said in (
            ("/odds?format=xml", 400, "format must be one of json, csv, arrow, got 'xml'"),
            ("/odds?format=arrow&limit=201", 400, "limit must be a whole number from 1 to 200"),
            ("/odds/closing?format=arrow&event_id=none", 404, "none"),
        ):
            refused = client.get(path)
            assert refused.status_code == status, path
            assert said in refused.json()["error"]["message"]
    with service.client("hobby") as client:
        refused = client.get("/odds?format=arrow&sportsbook=pinnacle")
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "tier_restricted")
        books = pl.read_ipc_stream(client.get("/odds?format=arrow&limit=200").content)["sportsbook"]
        assert {*books} <= set(catalog.tier_books("hobby"))


def test_headers_have_numbers_only(service: Running) -> None:
    """The `total` of CLV is an object: the figures of all its rows."""
    with service.client() as client:
        assert isinstance(client.get("/historical/clv").json()["meta"]["total"], dict)
        for form in ("csv", "arrow"):
            answer_ = client.get(f"/historical/clv?format={form}")
            assert (answer_.status_code, "x-total-count" in answer_.headers) == (200, False)


def test_other_readers_have_the_types(service: Running) -> None:
    ipc = pytest.importorskip("pyarrow.ipc")
    with service.client() as client:
        table = ipc.open_stream(client.get("/odds?format=arrow&limit=3").content).read_all()
    assert {name: str(table.schema.field(name).type) for name in ("id", "odds_decimal", "last_seen_at", "is_live")} == {
        "id": "large_string", "odds_decimal": "double", "last_seen_at": "timestamp[us, tz=UTC]", "is_live": "bool",
    }  # fmt: skip
