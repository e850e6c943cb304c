"""HTML pages: the live page, and the API reference as one document without scripts."""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from oddsengine import catalog
from oddsengine.detection.kinds import KINDS, Kind
from oddsengine.maths.devig import DEVIG_METHODS
from oddsengine_service.http.params import LARGEST
from oddsengine_service.http.v4_errors import CODES
from oddsengine_service.tiers import TIERS, required

_PARTS = Path(__file__).parents[1] / "page"
_SCRIPTS = (  # one module, in this order
    "settings.js", "text.js", "stream.js", "poller.js", "games.js", "stakes.js", "legend.js", "filters.js", "lists.js",
    "places.js", "board.js", "screen.js", "details.js", "movers.js", "bet_form.js", "track_record.js", "bet_report.js",
    "tracker.js", "alerts.js", "sources.js", "page.js", "markets.js", "controls.js",
)  # fmt: skip
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --dim: #7778; --code: #8882; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 68rem; padding: 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; border-bottom: 1px solid var(--line); }
h3 { font: 600 1rem/1.4 ui-monospace, monospace; margin: 1.5rem 0 .25rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
.fields td { overflow-wrap: anywhere; } .fields td:nth-child(1) { width: 12rem; }
.fields td:nth-child(2):not(:last-child) { width: 18rem; }
.fields td:nth-child(1) code { overflow-wrap: normal; }
td, th { border-top: 1px solid var(--line); padding: .3rem .6rem .3rem 0; text-align: left; vertical-align: top; }
code, pre { font: .85rem/1.45 ui-monospace, monospace; background: var(--code); border-radius: 4px; }
code { padding: .1rem .3rem; } pre { padding: .6rem; overflow-x: auto; max-height: 24rem; }
nav { columns: 20rem; column-gap: 2rem; font-size: .9rem; } nav section { break-inside: avoid; padding-bottom: .8rem; }
nav h4 { margin: 0; font-size: .9rem; } nav a { display: grid; grid-template-columns: 4rem 1fr; text-decoration: none; }
nav b { font-weight: 400; opacity: .7; } nav span { overflow-wrap: anywhere; }
nav a:hover span { text-decoration: underline; }
a { color: inherit; } h3 { scroll-margin-top: 1rem; }
@media (max-width: 44rem) {
  .fields tr { display: block; border-top: 1px solid var(--line); padding: .3rem 0; }
  .fields td, .fields td:nth-child(n) { border: 0; display: block; padding: 0; width: auto; }
}
.tag { font-weight: 400; opacity: .7; font-size: .85rem; }
"""
_ERROR_CODES = {
    "validation_error": "Invalid parameter or body; the message says what was given and what is allowed.",
    "invalid_request": "A required parameter is missing.",
    "unauthorized": "The API key is missing or invalid.",
    "invalid_api_key": "The same, on the stream.",
    "feature_required": "The tier of the key does not include the feature.",
    "tier_restricted": "The tier of the key does not allow this, or this sportsbook.",
    "secret_replaced": "The secret was replaced by a rotation; until it expires it may only read.",
    "not_found": "No such resource or path.",
    "method_not_allowed": "Method not allowed for this path.",
    "upgrade_required": "The path is for WebSocket clients only.",
    "origin_not_allowed": "Web pages of this origin may not connect.",
    "request_timeout": "The request body did not arrive in time.",
    "payload_too_large": "The request body is too large.",
    "rate_limited": "Rate limit of the tier exceeded; Retry-After says when to retry.",
    "too_many_streams": "Limit of concurrent streams of the account reached, or of the sets of books that they follow.",
    "internal_error": "Internal error; the request id identifies it in the logs.",
    "not_ready": "The node is starting.",
    "unavailable": "Something the request needs is unavailable; Retry-After says when to retry.",
    "insufficient_storage": "No space is left to store what was sent; nothing was changed.",
}


class Live(NamedTuple):
    """The live page and its content security policy: its own style and script by hash, this host, nothing else."""

    html: str
    policy: str


def live(base: str, demo_key: str = "", *, simulated: bool = False, live: str = "") -> Live:
    """The page at the root; the demo fills in its key, and offers live prediction markets at the path `live`."""
    style = (_PARTS / "page.css").read_text("utf-8")
    script = "\n".join((_PARTS / name).read_text("utf-8") for name in _SCRIPTS)
    html = (_PARTS / "index.html").read_text("utf-8")
    for name, text in {
        "base": escape(base),
        "demo_key": escape(demo_key),
        "simulated": "simulated" if simulated else "",
        "live": escape(live),
        "facts": msgspec.json.encode(_facts()).decode().replace("<", "\\u003c"),
        "style": style,
        "script": script,
    }.items():
        html = html.replace(f"{{{name}}}", text, 1)
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return Live(html, policy)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _facts() -> dict[str, Any]:
    """Data built into the page.

    Categories of markets, market types that settle alike, devig methods, commissions and fees of books, odds providers
    that several books share, the kinds of opportunities, ages at which a price is stale, and at which a row's oldest
    price is doubtful, the tier each list needs, tiers from low to high.
    """
    limits = catalog.thresholds()
    kinds = map(catalog.market_type, catalog.market_type_names())
    families = {
        kind.name: kind.family
        for kind in kinds
        if kind.usable and not kind.is_prop and kind.period == "full_game" and kind.fixed_line is None
    }
    return {
        "categories": {name: list(kinds) for name, kinds in catalog.categories().items()},
        "families": families,
        "fees": {
            book.id: [book.commission, book.contract_fee(live=False), book.contract_fee(live=True)]
            for book in catalog.books().values()
            if book.commission or book.fee or book.live_fee
        },
        "providers": {book.id: book.feed for book in catalog.books().values() if book.feed},
        "stale": {"live": limits.stale_live_s, "before": limits.stale_prematch_s},
        "doubtful": {"live": limits.stale_very_live_s, "before": limits.stale_flag_prematch_s},
        "methods": list(DEVIG_METHODS),
        "kinds": list(map(_list_of, KINDS.values())),
        "needs": {kind: required(kind).id for kind in KINDS},
        "tiers": list(TIERS),
    }


def _list_of(kind: Kind) -> dict[str, Any]:
    """What the page knows of the list of a kind."""
    least = kind.threshold
    return {
        "name": kind.name, "tab": kind.title, "what": kind.about, "none": kind.none, "event": kind.event_name,
        "path": f"{kind.name}?{least.listed}={least.usual:g}", "limit": least.listed,
        "threshold": f"{'Maximum' if least.is_most else 'Minimum'} {kind.measure}", "measure": kind.measure,
        "value": kind.value, "rises": kind.rises, "single": kind.single, "fields": kind.published,
    }  # fmt: skip


def reference(document: Mapping[str, Any]) -> str:
    parts = [f"<h1>{escape(document['info']['title'])}: API {escape(document['info']['version'])}</h1>"]
    base = document["servers"][0]["url"]
    parts.append(
        f"<p>{escape(document['info']['description'])} All paths but those of <code>/v4</code> are below "
        f"<code>{escape(base)}</code>. OpenAPI "
        'document: <a href="openapi.json">/openapi.json</a>; AsyncAPI document of the streams: '
        '<a href="asyncapi.json">/asyncapi.json</a>. Send your key as <code>X-API-Key: KEY</code> or '
        "<code>Authorization: Bearer KEY</code>; some endpoints also accept <code>api_key</code> in the query.</p>"
    )
    parts.append(_tiers())
    tags: dict[str, list[str]] = {}
    links: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            body = _body(operation, document["components"]["schemas"])
            tag = operation["tags"][0]
            tags.setdefault(tag, []).append(_operation(path, method.upper(), operation, body))
            links.setdefault(tag, []).append(
                f'<a href="#{operation["operationId"]}"><b>{method.upper()}</b> <span>{escape(path)}</span></a>'
            )
    lists = (f"<section><h4>{escape(tag)}</h4>{''.join(some)}</section>" for tag, some in links.items())
    parts.append(f"<nav>{''.join(lists)}</nav>")
    for tag, sections in tags.items():
        parts.append(f"<h2>{escape(tag)}</h2>{''.join(sections)}")
    rows = "".join(
        f'<tr id="{code}"><td><code>{code}</code></td><td>{_marked(doc)}</td></tr>'
        for code, doc in _ERROR_CODES.items()
    )
    parts.append(f"<h2>Errors</h2><p>Always <code>{{error: {{code, message, docs}}}}</code>.</p>{_table(rows)}")
    rows = "".join(
        f'<tr id="{code}"><td><code>{code}</code></td><td>{_marked(doc)}</td></tr>' for code, doc in CODES.items()
    )
    parts.append(
        "<p>Errors of <code>/v4</code> are <code>{message, error_code, details_url}</code>, with these codes or "
        f"those above in capital letters.</p>{_table(rows)}"
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(document['info']['title'])}: API</title><style>{_STYLE}</style>"
        f"<body>{''.join(parts)}</body></html>"
    )


def _tiers() -> str:
    head = "<tr><th>tier</th><th>requests per minute</th><th>delay</th><th>books</th><th>events per batch</th></tr>"
    rows = "".join(
        f"<tr><td><code>{tier.id}</code></td><td>{tier.rate:,}</td><td>{tier.delay} s</td>"
        f"<td>{'all' if tier.books is None else tier.books}</td><td>{tier.batch}</td></tr>"
        for tier in TIERS.values()
    )
    return (
        f"<table>{head}{rows}</table><p>Every response to a key has the rate limit in <code>X-RateLimit-Limit</code>, "
        "<code>-Remaining</code> and <code>-Reset</code>, and the delay in <code>X-Data-Delay</code>. A page has at "
        "most 200 entries, and <code>offset</code> is at most 5,000; lists with <code>next_cursor</code> can be paged "
        "further, even while prices move. With <code>If-None-Match</code>, unchanged responses have status 304.</p>"
    )


def _table(rows: str) -> str:
    """A table of names and what they mean, which is a list on a phone."""
    return f'<table class="fields">{rows}</table>'


def _marked(text: str) -> str:
    """HTML of a text with names in backticks."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def _body(operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    if "requestBody" not in operation:
        return ""
    schema = schemas[operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]]
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{_type(field)}"
        f"{', required' if name in schema.get('required', ()) else ''}</td>"
        f"<td>{_marked(field.get('description', ''))}</td></tr>"
        for name, field in schema["properties"].items()
    )
    return f"<p>Body, JSON: {_marked(schema.get('description', ''))}</p>{_table(rows)}"


def _type(field: Mapping[str, Any]) -> str:
    """Type of a field in one or two words."""
    if "anyOf" in field:
        return " or ".join(_type(each) for each in field["anyOf"])
    if "$ref" in field:
        return escape(field["$ref"].rpartition("/")[2])
    if "enum" in field:
        return escape(" | ".join(map(str, field["enum"])))
    return f"array of {_type(field['items'])}" if field.get("type") == "array" else escape(str(field.get("type", "")))


def _operation(path: str, method: str, operation: Mapping[str, Any], body: str) -> str:
    out = [f'<h3 id="{operation["operationId"]}">{method} {escape(path)}</h3><p>{escape(operation["summary"])}']
    if operation.get("description"):
        out.append(f"<br>{_marked(operation['description'])}")
    out.append(f'<br><span class="tag">{_key(operation["security"])}</span></p>')
    if operation["parameters"]:
        rows = [
            f"<tr><td><code>{escape(param['name'])}</code></td><td>{_kind(param['schema'])}"
            f"{', required' if param['required'] else ''}</td><td>{_marked(param.get('description', ''))}</td></tr>"
            for param in operation["parameters"]
        ]
        out.append(_table("".join(rows)))
    out.append(body)
    good = next(iter(operation["responses"].values()))
    for media in good.get("content", {}).values():
        if "example" in media:
            text = msgspec.json.format(msgspec.json.encode(media["example"]), indent=2).decode()
            out.append(f"<details><summary>Example response</summary><pre>{escape(text)}</pre></details>")
    return "".join(out)


def _key(ways: Sequence[Mapping[str, Any]]) -> str:
    """Which key is required."""
    if not ways:
        return "No key needed."
    if len(ways) == 1:
        return "Requires an operator's bearer token."
    return ("A key is optional" if {} in ways else "Requires a key") + (
        ", also as api_key in the query." if {"query": []} in ways else "."
    )


def _kind(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        text = " | ".join(map(_values, schema["anyOf"]))
    else:
        text = _values(schema)
    if "default" in schema:
        default = schema["default"]
        text += f", default {str(default).lower() if isinstance(default, bool) else default}"
    return escape(text)


def _values(schema: Mapping[str, Any]) -> str:
    """The type of a parameter with its limits, or the values that it can have."""
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    text = str(schema.get("format") or schema.get("type", ""))
    low, high = schema.get("minimum", -LARGEST), schema.get("maximum", LARGEST)
    if low > -LARGEST:
        text += f" from {low:,.10g}"
    if high < LARGEST:
        text += f" to {high:,.10g}"
    return text
