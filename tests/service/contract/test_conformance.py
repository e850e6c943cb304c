"""Every answer beside the published contract: fields by name, parameters, defaults, headers, books and delay."""

import copy
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from support import contract
from support.contract import FIELDS, KINDS, READ, check, faults
from support.effort import some
from support.service_running import PATIENCE_S, TIER_IDS, Running, has, without_main_lines

from oddsengine_service.tiers import books_of

Json = dict[str, Any]
LATER = {"GameState"}  # not every made-up game that an arbitrage is of has a score


@pytest.fixture
def ids(service: Running) -> dict[str, str]:
    """Ids that every tier sees."""
    return service.ids()


# ---- fields ----


@pytest.mark.parametrize("tier", some(TIER_IDS, 2))
@pytest.mark.parametrize(("path", "envelope", "kind", "meta"), READ, ids=[each[0] for each in READ])
def test_every_field_of_the_contract(
    service: Running, ids: dict[str, str], tier: str, path: str, envelope: str, kind: str, meta: str
) -> None:
    with service.client(tier) as client:
        answer = client.get(path.format(**ids))
    if not has(tier, path):
        assert answer.status_code == 403
        return
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert kind.startswith(("[Splits", "[History")) or body["data"], "nothing to look at"
    if envelope:
        check(body, envelope, "body")
    check(body["data"], kind, "data")
    if meta:
        check(body["meta"], meta, "meta")


@pytest.fixture(scope="module")
def bodies(service: Running) -> list[tuple[Any, str]]:
    """Live answers, or parts of them, and what they are: every table of the contract is met in one."""
    ids = service.ids()
    with service.client() as client:
        found = []
        for path, envelope, kind, meta in READ:
            body = client.get(path.format(**ids)).json()
            found += [(body, envelope), (body["data"], kind), (body.get("meta"), meta)]
        found.append((client.get("/health").json(), "Health"))
        found.append((client.get("/odds?limit=0").json(), "Error"))
        found.append((client.post("/account/keys", json={"name": "n"}).json()["data"], "NewKey"))
        since = client.get("/odds/delta?since=2026-02-07T18:00:00Z").json()["meta"]["server_time"]
        for _ in range(40):
            service.advance(3)
            removed = client.get("/odds/delta", params={"since": since}).json()["removed"]
            if removed:
                break
        found.append((removed, "[Removed]"))
        holds = client.get("/opportunities/low_hold?max_hold=50&market=h2h&sport=soccer&limit=200").json()["data"]
        found.append((holds, "[LowHold]"))
    return [(body, kind) for body, kind in found if kind]


def objects(body: Any, kind: str, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Where each object of a table stands in a body: the first one of each list, in each place."""
    kind = kind.removesuffix("~").removesuffix("?")
    if kind.startswith("{"):
        for name, each in list(body.items())[:1]:
            yield from objects(each, f"[{kind[1:-1]}]", (*path, name))
    elif kind.startswith("["):
        for place, each in list(enumerate(body))[:1]:
            yield from objects(each, kind[1:-1], (*path, place))
    elif kind in FIELDS and body is not None:
        yield path, kind
        for name, field in FIELDS[kind].items():
            if name in body and body[name] is not None:
                yield from objects(body[name], field, (*path, name))


def first_rows(body: Any) -> Any:
    """An answer with the first row of each list."""
    if isinstance(body, dict):
        return {name: first_rows(each) for name, each in body.items()}
    return [first_rows(each) for each in body[:1]] if isinstance(body, list) else body


def test_every_table_is_met(bodies: list[tuple[Any, str]]) -> None:
    met = {kind for body, whole in bodies for _, kind in objects(body, whole)}
    assert met >= set(FIELDS) - LATER


def test_a_missing_field_or_one_of_another_kind_is_told_by_its_name(bodies: list[tuple[Any, str]]) -> None:
    """Each field of each object of live answers, taken out and spoilt."""
    tried = set()
    for answer, whole in bodies:
        assert not [*faults(answer, whole, "body")]
        body = first_rows(answer)
        for path, kind in objects(body, whole):
            for name, field in FIELDS[kind].items():
                if (kind, name) in tried:
                    continue
                broken = copy.deepcopy(body)
                part = broken
                for step in path:
                    part = part[step]
                if name not in part:
                    continue
                tried.add((kind, name))
                del part[name]
                told = [*faults(broken, whole, "body")]
                expected = [] if field.endswith("~") else [f".{name} is missing"]
                assert [text[-len(f".{name} is missing") :] for text in told] == expected, (kind, name)
                part[name] = object()
                assert any(name in text for text in faults(broken, whole, "body")), (kind, name)
    optional = {(kind, name) for kind, fields in FIELDS.items() for name in fields if fields[name].endswith("~")}
    every = {(kind, name) for kind, fields in FIELDS.items() if kind not in LATER for name in fields}
    assert every - tried <= optional


def test_prices_are_whole_wherever_they_stand(service: Running, ids: dict[str, str]) -> None:
    """Lists by name, and what is grouped: the same rows as in the list."""
    with service.client() as client:
        event = ids["event"]
        whole = {row["id"]: row for row in rows_of(client, f"/odds?event={event}")}
        told = client.get("/odds/comparison", params={"event": event}).json()["data"]
        batch = client.post("/odds/batch", json={"event_ids": [event]}).json()["data"]
        (grouped,) = client.get("/odds", params={"event": event, "group_by": "event"}).json()["data"]
        single = rows_of(client, f"/events/{event}/odds")
    for rows in ([r for rs in told.values() for r in rs], batch[event], grouped["odds"], single):
        assert {row["id"]: row for row in rows} == whole
    for row in whole.values():
        assert (row["probability"], row["timestamp"]) == (row["odds_probability"], row["last_seen_at"])
        assert row["odds_probability"] == pytest.approx(1.0 / row["odds_decimal"], abs=1e-6)
        assert row["is_alternate_line"] == (None if row["is_main_line"] is None else not row["is_main_line"])
        if row["market_type"] in ("moneyline", "h2h"):
            assert row["line"] is None


def rows_of(client: httpx2.Client, path: str, **params: Any) -> list[Json]:
    """A whole list, by cursor where there is one, else by offset."""
    found: list[Json] = []
    while True:
        page = client.get(path, params={**dict(httpx2.URL(path).params), "limit": 200, **params}).json()
        found += page["data"]
        pages = page["pagination"]
        if not pages["has_more"]:
            return found
        cursor = pages.get("next_cursor")
        params |= {"cursor": cursor} if cursor else {"offset": pages["next_offset"]}


# ---- parameters ----

SHARED = "sport league sportsbook market event live"
PAGED = {"limit": (50, 1, 200), "offset": (0, 0, 5000)}
EXTRA = "player_name stat_category is_player_prop"
# Names of parameters by path, as published; what is said of a default stands in DEFAULTS.
PARAMETERS = {
    "/sports": "include_empty",
    "/leagues": "sport include_empty",
    "/sportsbooks": "region sharp catalog include_unlisted include_inactive",
    "/teams": "sport league q",
    "/events": "sport league sportsbook live has_score team date q limit offset",
    "/events/{eventId}/odds": "sportsbook market limit offset",
    "/odds": f"{SHARED} {EXTRA} add_sportsbook team date q min_odds max_odds sort fields group_by limit offset cursor "
    "event_id is_main_line selection",
    "/odds/best": f"{SHARED} team limit offset",
    "/odds/comparison": "event event_id market",
    "/odds/delta": f"since {SHARED} limit offset cursor",
    "/odds/closing": "event_id",
    "/splits": "sport league sportsbook event event_id market limit offset",
    "/splits/history": "event_id sportsbook start_time end_time limit",
    "/opportunities/ev": f"{SHARED} {EXTRA} min_odds max_odds min_ev max_ev min_market_width max_market_width "
    "max_odds_age date_range sort team limit offset selection min_kelly max_kelly min_confidence max_confidence "
    "max_hold devig_book devig_method is_main_line",
    "/opportunities/arbitrage": f"{SHARED} team min_odds max_odds min_profit max_odds_age date_range format group sort "
    "limit offset",
    "/opportunities/middles": f"{SHARED} min_size sort limit offset",
    "/opportunities/low_hold": f"{SHARED} max_hold limit offset",
    "/stream": "channel sport sportsbook league event market min_ev min_profit state",
}
DEFAULTS = {
    ("/sports", "include_empty"): False,
    ("/leagues", "include_empty"): False,
    ("/sportsbooks", "catalog"): False,
    ("/sportsbooks", "include_unlisted"): False,
    ("/sportsbooks", "include_inactive"): False,
    ("/splits/history", "limit"): 100,
    ("/opportunities/ev", "min_ev"): 0,
    ("/opportunities/ev", "sort"): "-ev",
    ("/opportunities/arbitrage", "min_profit"): 0.5,
    ("/opportunities/arbitrage", "format"): "json",
    ("/opportunities/arbitrage", "sort"): "profit",
    ("/stream", "channel"): "opportunities",
    ("/stream", "min_ev"): 2.0,
    ("/stream", "min_profit"): 0.5,
}
CHOICES = {
    ("/sportsbooks", "region"): contract.REGIONS,
    ("/odds", "sort"): (
        "odds_american", "odds_decimal", "probability", "timestamp", "event_start_time", "sportsbook", "sport",
        "league",
    ),
    ("/odds", "group_by"): ("event",),
    ("/opportunities/ev", "sort"): (
        "ev", "odds", "confidence", "confidence_score", "kelly", "kelly_percent", "start_time", "time", "book_count",
        "books",
    ),
    ("/opportunities/arbitrage", "sort"): ("profit", "start_time", "sport"),
    ("/opportunities/arbitrage", "format"): ("json", "csv"),
    ("/opportunities/arbitrage", "group"): ("best",),
    ("/opportunities/middles", "sort"): ("quality", "ev", "probability", "middle_size"),
    ("/stream", "channel"): ("odds", "opportunities", "gamestate", "all"),
}  # fmt: skip


def permits(schema: dict[str, Any], word: str) -> bool:
    return word in schema["enum"] if "enum" in schema else bool(re.fullmatch(schema["pattern"], word))


def test_the_document_names_no_module_of_ours(service: Running) -> None:
    text = httpx2.get(f"{service.origin}/openapi.json", timeout=PATIENCE_S).text
    assert "oddsengine_service" not in text, "clients would be generated with other names once a file is renamed"


def test_every_parameter_is_described_with_its_default_and_limits(service: Running) -> None:
    document = httpx2.get(f"{service.origin}/openapi.json", timeout=PATIENCE_S).json()
    assert document["info"]["version"] == "2.0.0"
    wrong = []
    for path, names in PARAMETERS.items():
        given = [p for p in document["paths"][path]["get"]["parameters"] if p["in"] == "query"]
        there = {p["name"]: p["schema"] for p in given}
        also = "".join(p["description"].partition("Also accepted as")[2] for p in given)
        wrong += [f"{path} lacks {name}" for name in names.split() if name not in there and f"`{name}`" not in also]
        for name, (default, low, high) in PAGED.items():
            if name in names.split() and (path, name) not in DEFAULTS:
                said = {key: there[name].get(key) for key in ("default", "minimum", "maximum")}
                if said != {"default": default, "minimum": low, "maximum": high}:
                    wrong.append(f"{path} {name}: {said}")
        for name, schema in there.items():
            if (path, name) in DEFAULTS and schema.get("default") != DEFAULTS[path, name]:
                wrong.append(f"{path} {name} is by default {schema.get('default')}")
            if (path, name) in CHOICES and not all(permits(schema, word) for word in CHOICES[path, name]):
                wrong.append(f"{path} {name} takes {schema.get('enum')}")
    assert not wrong, "\n".join(wrong)


def test_every_choice_is_taken_and_every_other_word_refused(service: Running, ids: dict[str, str]) -> None:
    with service.client() as client:
        for (path, name), choices in CHOICES.items():
            if path == "/stream":
                continue
            signed = [f"-{word}" for word in choices] if name == "sort" else []
            for word in (*choices, *signed):
                assert client.get(path, params={name: word, "limit": 1}).status_code == 200, (path, name, word)
            refused = client.get(path, params={name: "colour"})
            assert (refused.status_code, refused.json()["error"]["code"]) == (400, "validation_error"), (path, name)
            assert name in refused.json()["error"]["message"]
            assert "colour" in refused.json()["error"]["message"]


@pytest.mark.parametrize("path", [path for path, names in PARAMETERS.items() if "offset" in names.split()])
def test_pages_are_50_and_at_most_200(service: Running, ids: dict[str, str], path: str) -> None:
    path = path.replace("{eventId}", ids["event"])
    needed = {"since": ids["since"]} if path == "/odds/delta" else {}
    with service.client() as client:
        body = client.get(path, params=needed).json()
        pages, meta = body["pagination"], body["meta"]
        more = meta["total"] > 50
        assert len(body["data"]) == meta["count"] == min(50, meta["total"])
        assert (pages["limit"], pages["offset"]) == (50, 0)
        assert (pages["has_more"], pages["next_offset"]) == (more, 50 if more else None)
        for name, word in (("limit", "0"), ("limit", "201"), ("offset", "-1"), ("offset", "5001"), ("limit", "many")):
            refused = client.get(path, params={**needed, name: word})
            assert (refused.status_code, refused.json()["error"]["code"]) == (400, "validation_error"), (name, word)
        for name, word in (("limit", "1"), ("limit", "200"), ("offset", "5000")):
            assert client.get(path, params={**needed, name: word}).status_code == 200, (name, word)


@pytest.mark.parametrize("path", ["/odds", "/events", "/opportunities/ev", "/opportunities/arbitrage"])
def test_days_have_one_form(service: Running, path: str) -> None:
    name = "date"
    with service.client() as client:
        for word in ("2026-02-07", "today", "tomorrow", "0001-01-01"):
            assert client.get(path, params={name: word}).status_code == 200, word
        for word in ("20260207", "2026-W06-6", "2026-2-7", "2026-02-30", "7 February", "2026-02-07T00:00:00Z"):
            refused = client.get(path, params={name: word})
            assert refused.status_code == 400, word
            assert word in refused.json()["error"]["message"]


# The ends of the calendar, which a time zone leaves
ENDS = ("0001-01-01T00:00:00+23:59", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "9999-12-31T23:59:59Z")
TIMES = {
    "/odds/delta": ("since",),
    "/odds/history?event=closed": ("since", "until"),
    "/historical/clv": ("from", "to"),
    "/splits/history?event_id=closed": ("start_time", "end_time"),
}


@pytest.mark.parametrize("path", TIMES)
def test_no_time_is_too_early_or_too_late(service: Running, path: str) -> None:
    with service.client() as client:
        for first in ENDS:
            for last in ENDS:
                given = dict(zip(TIMES[path], (first, last), strict=False))
                answer = client.get(path, params={**dict(httpx2.URL(path).params), **given})
                assert answer.status_code in (200, 400), (given, answer.text)


# ---- headers ----

LIMITS = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "x-data-delay", "x-request-id")
# Whatever comes of a request with a key, its answer says how the key stands.
OUTCOMES: list[tuple[str, str, Json, int]] = [
    ("GET", "/odds?limit=1", {}, 200),
    ("HEAD", "/odds?limit=1", {}, 200),
    ("GET", "/odds?limit=1", {"headers": {"If-None-Match": "*"}}, 304),
    ("POST", "/account/keys", {"json": {"name": "one more"}}, 201),
    ("GET", "/odds?limit=0", {}, 400),
    ("GET", "/odds?limit=%ff", {}, 400),
    ("POST", "/odds/batch", {"content": b"{"}, 400),
    ("GET", "/opportunities/ev", {}, 403),
    ("GET", "/odds?sportsbook=sbobet", {}, 403),
    ("GET", "/stream", {}, 403),
    ("GET", "/events/nobody", {}, 404),
    ("GET", "/nothing/like/this", {}, 404),
    ("GET", "/odds/", {}, 404),
    ("GET", "/odds%2Fbest", {}, 404),
    ("DELETE", "/odds", {}, 405),
    ("OPTIONS", "/odds", {}, 405),
    ("POST", "/odds/batch", {"content": b" " * ((1 << 20) + 1)}, 413),
    ("POST", "/odds/batch", {"content": b"x", "headers": {"Content-Encoding": "br"}}, 415),
]


@pytest.mark.parametrize(
    ("method", "path", "sent", "status"), OUTCOMES, ids=[f"{row[3]} {row[0]} {row[1]}" for row in OUTCOMES]
)
@pytest.mark.parametrize("how", ["X-API-Key", "Authorization"])
def test_limits_stand_on_every_answer_to_a_key(
    service: Running, method: str, path: str, sent: Json, status: int, how: str
) -> None:
    headers = {how: "demo_hobby" if how == "X-API-Key" else "Bearer demo_hobby", **sent.get("headers", {})}
    with service.client(None) as client:
        answer = client.request(method, path, **{**sent, "headers": headers})
    assert answer.status_code == status
    assert [name for name in LIMITS if name not in answer.headers] == []
    assert (answer.headers["x-ratelimit-limit"], answer.headers["x-ratelimit-remaining"]) == ("120", "119")
    assert answer.headers["x-data-delay"] == "0"


def test_a_key_that_is_used_up_is_told_so_whatever_it_asks(service: Running) -> None:
    service.clock.pass_minute()
    with httpx2.Client(base_url=service.base, headers={"X-API-Key": "demo_free"}, timeout=PATIENCE_S) as client:
        for _ in range(12):
            assert client.get("/nothing").status_code == 404
        for path in ("/nothing", "/odds", "/odds?limit=0", "/opportunities/ev", "/splits", "/stream"):
            answer = client.get(path)
            body = answer.json()
            assert (answer.status_code, body["error"]["code"]) == (429, "rate_limited"), path
            assert [name for name in LIMITS if name not in answer.headers] == []
            assert answer.headers["x-ratelimit-remaining"] == "0"
            wait = int(answer.headers["retry-after"])
            assert wait == body["retry_after"] == body["error"]["retry_after"], "within the error, and beside it"
        assert client.get("/health").status_code == 200


@pytest.mark.parametrize(
    ("path", "tier", "needed"),
    [
        ("/opportunities/ev", "hobby", "pro"), ("/opportunities/arbitrage", "free", "hobby"),
        ("/odds?sportsbook=sbobet", "free", "sharp"), ("/odds?sportsbook=pinnacle", "hobby", "pro"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_tier_that_is_needed(service: Running, path: str, tier: str, needed: str) -> None:
    with service.client(tier) as client:
        body = client.get(path).json()
    assert body["required_tier"] == body["error"]["required_tier"] == needed
    assert needed in body["error"]["message"]


def test_what_is_posted_is_never_stored(service: Running) -> None:
    sent: list[tuple[str, str, Json]] = [
        ("POST", "/odds/batch", {"event_ids": ["x"]}),
        ("POST", "/deeplinks/batch", {"ids": ["x"]}),
        ("POST", "/account/keys", {"name": "x"}),
        ("POST", "/splits", {"splits": []}),
        ("POST", "/odds/batch", {}),
    ]
    with service.client("sharp") as client:
        for method, path, body in sent:
            answer = client.request(method, path, json=body)
            assert answer.headers["cache-control"] == "no-store", path
            assert "etag" not in answer.headers
        made = client.post("/account/keys", json={"name": "x"}).json()["data"]["id"]
        for answer in (client.post(f"/account/keys/{made}/rotate"), client.delete(f"/account/keys/{made}")):
            assert answer.headers["cache-control"] == "no-store"


# ---- whose books, and how late ----


def books_in(body: Any) -> set[str]:
    """Every book that an answer names: by field, and by keys of maps of books."""
    found: set[str] = set()
    if isinstance(body, list):
        for each in body:
            found |= books_in(each)
    elif isinstance(body, dict):
        for name, value in body.items():
            if name in ("sportsbook", "book") and isinstance(value, str):
                found.add(value)
            elif name in ("books", "all_books", "deep_links", "external_ids", "by_sportsbook"):
                found |= set(value)  # a list of them, or a map by them
            if isinstance(value, dict | list):
                found |= books_in(value)
    return found


@pytest.mark.parametrize("tier", ["free", "hobby", "pro"])
def test_no_answer_names_a_book_above_the_tier(service: Running, ids: dict[str, str], tier: str) -> None:
    own = books_of(tier)
    assert own is not None
    event, met = ids["event"], set()
    with service.client() as all_, service.client(tier) as client:
        foreign = rows_of(all_, f"/events/{event}/odds")
        assert books_in(foreign) - own
        cursor = all_.get("/odds?limit=5").json()["pagination"]["next_cursor"]
        moved = all_.get(f"/odds/delta?since={ids['since']}&limit=5").json()["pagination"]["next_cursor"]
        asked = [
            "/odds?limit=200", "/odds?group_by=event", "/odds/best?limit=200", f"/odds/comparison?event={event}",
            f"/odds/delta?since={ids['since']}&limit=200", f"/events/{event}", f"/events/{event}/odds?limit=200",
            "/events?limit=200", f"/odds/closing?event_id={ids['closed']}", f"/odds/history?event={event}&limit=200",
            f"/odds?cursor={cursor}&limit=200", f"/odds/delta?since={ids['since']}&cursor={moved}&limit=200",
            "/odds?limit=200&sort=-odds_decimal", "/odds?fields=id,sportsbook&limit=200",
            "/opportunities/ev?limit=200", "/opportunities/arbitrage?min_profit=-5&limit=200",
            "/opportunities/middles?min_ev=-20&limit=200", "/opportunities/middles/summary",
            "/opportunities/low_hold?max_hold=10&limit=200", "/historical/clv",
        ]  # fmt: skip
        for path in asked:
            answer = client.get(path)
            if not has(tier, path):
                assert answer.status_code == 403, path
                continue
            assert answer.status_code == 200, (path, answer.text)
            body = answer.json()
            named = books_in(body["data"]) | books_in(body.get("removed", []))
            assert named <= own, path
            met |= named
        batch = client.post("/odds/batch", json={"event_ids": [event, ids["closed"]]}).json()["data"]
        assert books_in(batch) <= own
        assert books_in(batch)
        beyond = sorted(books_in(foreign) - own)[0]
        links = client.post("/deeplinks/batch", json={"ids": [row["id"] for row in foreign[:500]]}).json()["data"]
        assert {links[row["id"]] for row in foreign[:500] if row["sportsbook"] not in own} == {None}
        assert any(links.values())
        for path in (*asked[:5], asked[6], *asked[8:10]):
            refused = client.get(path, params={**dict(httpx2.URL(path).params), "sportsbook": beyond})
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "tier_restricted"), path
        refused = client.post("/odds/batch", json={"event_ids": [event], "sportsbook": beyond})
        assert refused.status_code == 403
    assert met, "there was something to see"


def test_a_free_key_sees_everything_a_minute_late(service: Running, ids: dict[str, str]) -> None:
    """Each answer of now, with the books of the tier, is the one that the tier gets in a minute."""
    books = ",".join(sorted(books_of("free") or ()))
    event, closed = ids["event"], ids["closed"]
    same = [
        f"/events/{event}/odds?limit=200", "/odds?limit=200&live=true&sort=event_start_time", "/odds/best?limit=200",
        f"/odds/comparison?event={event}", f"/odds/history?event={event}&limit=50",
        f"/odds/closing?event_id={closed}", "/odds?group_by=event&limit=3",
    ]  # fmt: skip
    with service.client("hobby") as now, service.client("free") as late:

        def ask(client: httpx2.Client, path: str) -> Any:
            found = client.get(path, params={**dict(httpx2.URL(path).params), "sportsbook": books})
            assert found.status_code == 200, (path, found.text)
            return without_main_lines(found.json()["data"])

        before = {row["id"] for row in rows_of(now, "/odds", sportsbook=books)}
        then = {path: ask(now, path) for path in same}
        batch = {"event_ids": [event], "sportsbook": books}
        then["batch"] = without_main_lines(now.post("/odds/batch", json=batch).json()["data"])
        heard = {b["id"]: b["last_update"] for b in now.get("/sportsbooks").json()["data"]}
        since = "/odds/delta?since=2026-02-07T18:00:00Z"
        server_time = now.get(since).json()["meta"]["server_time"]
        service.advance(12)
        assert {path: ask(late, path) for path in same} == {path: then[path] for path in same}
        assert without_main_lines(late.post("/odds/batch", json=batch).json()["data"]) == then["batch"]
        assert {b["id"]: b["last_update"] for b in late.get("/sportsbooks").json()["data"]} == heard
        assert late.get(since).json()["meta"]["server_time"] == server_time
        changed = [path for path in same if ask(now, path) != then[path]]
        assert {same[1], same[2], same[4]} <= set(changed), "the board moved meanwhile"
        after = {row["id"] for row in rows_of(now, "/odds", sportsbook=books)}
        assert {row["id"] for row in rows_of(late, "/odds")} == before
        assert after


def test_a_free_key_does_not_see_what_is_new(service: Running) -> None:
    now = service.node.engine.now
    assert now is not None
    row = {
        "sportsbook": "draftkings", "event_id": "brand_new", "sport": "basketball", "league": "nba",
        "home_team": "Boston Celtics", "away_team": "Miami Heat", "market_type": "moneyline",
        "selection": "Boston Celtics", "selection_type": "home", "odds_decimal": 1.9, "last_seen_at": now,
        "event_start_time": now + timedelta(hours=2),
    }  # fmt: skip
    service.node.write(service.node.step, [row], now).result(PATIENCE_S)
    with service.client("hobby") as now_, service.client("free") as late, service.client(None) as nobody:
        (price,) = now_.get("/odds?event=brand_new").json()["data"]

        def seen(client: httpx2.Client) -> list[bool]:
            link = client.post("/deeplinks/batch", json={"ids": [price["id"]]}).json()["data"][price["id"]]
            return [
                client.get("/events/brand_new").status_code == 200,
                client.get("/events/brand_new/odds").status_code == 200,
                bool(client.get("/odds?event=brand_new").json()["data"]),
                bool(client.get("/odds/best?event=brand_new").json()["data"]),
                bool(client.get("/odds/comparison?event=brand_new").json()["data"]),
                bool(client.post("/odds/batch", json={"event_ids": ["brand_new"]}).json()["data"]["brand_new"]),
                bool(client.get("/odds/history?event=brand_new").json()["data"]),
                any(r["event_id"] == "brand_new" for r in rows_of(client, "/odds/delta", since="2026-02-07T18:00:00Z")),
                "brand_new" in [each["id"] for each in rows_of(client, "/events")],
                link is not None,
            ]

        def events(client: httpx2.Client) -> int:
            return sum(each["event_count"] for each in client.get("/sports").json()["data"])

        counted = events(now_), events(late), events(nobody)
        assert (seen(now_), seen(late)) == ([True] * 10, [False] * 10)
        assert counted == (counted[0], counted[0] - 1, counted[0] - 1)
        service.advance(13)
        assert seen(late) == [True] * 10
        assert (events(late), events(nobody)) == (counted[0], counted[0])


# ---- keys ----


def test_a_key_in_the_wrong_place_is_not_sent_back(service: Running) -> None:
    """Somebody mixes up parameters: neither the error nor the log has the key."""
    with service.client("sharp") as client:
        key = client.post("/account/keys", json={"name": "mixed up"}).json()["data"]["key"]
        secret = key.partition(".")[2][:20]
        asked = ["/odds?limit={}", "/odds?sort={}", "/odds?live={}", "/odds?date={}", "/odds/delta?since={}",
                 "/odds?fields={}", "/sports/{}", "/leagues/{}", "/sportsbooks/{}", "/events/{}", "/odds?min_odds={}",
                 "/opportunities/middles/{}", "/account/keys/{}", "/deeplink/{}?state={}", "/odds/closing?event_id={}",
                 "/deeplink/x?fallback={}", "/{}", "/stream?channel={}", "/stream?state={}"]  # fmt: skip
        for path in asked:
            answer = client.get(path.replace("{}", key))
            assert answer.status_code in (400, 404, 405), path
            assert secret not in answer.text, path
        for body in ({"tier": key}, {"name": key * 3}, {"event_ids": key}):
            for path in ("/account/keys", "/odds/batch", "/deeplinks/batch"):
                answer = client.post(path, json=body)
                assert secret not in answer.text.replace(key * 3, ""), (path, body)
    assert secret not in service.log_text()


def test_a_key_manages_its_own_account_only(service: Running) -> None:
    with service.client("pro") as mine, service.client("enterprise") as other:
        made = mine.post("/account/keys", json={"name": "mine"}).json()["data"]
        use = {"X-API-Key": made["key"]}
        for method, path in (("DELETE", f"/account/keys/{made['id']}"), ("POST", f"/account/keys/{made['id']}/rotate")):
            refused = other.request(method, path)
            unknown = other.request(method, path.replace(made["id"], "oe_000000000000"))
            assert refused.status_code == unknown.status_code == 404
            told = refused.json()["error"]["message"].replace(made["id"], "oe_000000000000")
            assert told == unknown.json()["error"]["message"], "nobody learns that there is one"
        assert made["id"] not in other.get("/account/keys").text
        assert mine.get("/account", headers=use).status_code == 200
        low = mine.post("/account/keys", json={"name": "low", "tier": "free"}).json()["data"]
        weak = {"X-API-Key": low["key"]}
        refused = mine.post(f"/account/keys/{made['id']}/rotate", headers=weak)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "tier_restricted")
        refused = mine.post("/account/keys", json={"tier": "pro"}, headers=weak)
        assert refused.status_code == 403, "a lower key cannot make a higher one"


# ---- addresses ----


def test_forwarded_addresses_count_only_from_proxies_that_are_trusted(service: Running) -> None:
    requests = service.service.api.requests
    asked = [{"X-Forwarded-For": f"203.0.113.{n}"} for n in range(13)]

    def statuses() -> list[int]:
        service.clock.pass_minute()
        with httpx2.Client(base_url=service.base, timeout=PATIENCE_S) as client:
            return [client.get("/sports", headers=headers).status_code for headers in asked]

    assert statuses() == [200] * 12 + [429], "nobody is believed"
    trusted, requests.trusted = requests.trusted, frozenset({"127.0.0.1"})
    try:
        assert statuses() == [200] * 13
        asked[:] = [{"X-Forwarded-For": f"198.51.100.{n}, 203.0.113.9"} for n in range(13)]
        assert statuses() == [200] * 12 + [429], "only what the proxy itself added"
        asked[:] = [{"X-Forwarded-For": f"2001:db8:0:7::{n:x}"} for n in range(13)]
        assert statuses() == [200] * 12 + [429], "a network of IPv6 is one caller"
        asked[:] = [{"X-Forwarded-For": f"2001:db8:0:{n:x}::1"} for n in range(13)]
        assert statuses() == [200] * 13
    finally:
        requests.trusted = trusted


# ---- the whole of it ----


def test_times_are_utc_and_end_with_z(bodies: list[tuple[Any, str]]) -> None:
    text = json.dumps([body for body, _ in bodies])
    found = re.findall(r'"(\d{4}-\d\d-\d\dT[^"]*)"', text)
    assert len(found) > 1000
    assert [time for time in found if not KINDS["time"](time)] == []
