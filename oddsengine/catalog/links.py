"""Links to book pages: bet slip, event or home page, for one state or all.

Links are built from a template and the book's own ids, and lead to a host in `links.toml`. A link from elsewhere, given
with a price or a request, is followed only if `allowed` accepts its host.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import quote

from oddsengine.catalog import data_files
from oddsengine.catalog.books import book

KINDS = ("outcome", "event", "home")
TEMPLATES = (*KINDS, *(f"state_{kind}" for kind in KINDS))
_PLACES = ("{event}", "{market}", "{selection}", "{state}")

# No user, port or escapes, and nothing browsers parse differently: a host, then the rest or nothing.
_URL = re.compile(r"https://((?:[a-z0-9-]+\.)+[a-z]{2,})((?:[/?#][!-\[\]-~]*)?)", re.IGNORECASE | re.ASCII)
_HOST = re.compile(r"(?:[a-z0-9-]+\.)+[a-z]{2,}")
_TEMPLATE = re.compile(r"https://((?:[a-z0-9-]+\.|\{state\}\.)+[a-z]{2,})(/[!-~]*)")


class BetLink(NamedTuple):
    """A link to an outcome in the bet slip, an event, or the home page."""

    url: str
    kind: str


def host_fault(name: str) -> str:
    """Return what is wrong with the name of a host, or an empty string."""
    return "" if _HOST.fullmatch(name) else "has to be a host of small letters, such as go.example.com"


def fault(key: str, template: str) -> str:
    """Return what is wrong with a template, or an empty string."""
    match = _TEMPLATE.fullmatch(template)
    if match is None:
        return "has to be https, a host of small letters, and a path"
    named = set(re.findall(r"\{\w*\}", template))
    if strange := sorted(named - set(_PLACES)):
        return f"has {', '.join(strange)}; allowed: {', '.join(_PLACES)}"
    if ("{state}" in named) != key.startswith("state_"):
        return "has {state} where the key begins with state_, and nowhere else"
    if key.endswith("home") and named - {"{state}"}:
        return "cannot name an event, a market or a selection"
    return ""


@cache
def _source() -> dict[str, Any]:
    return data_files.toml("links.toml")


@cache
def _templates() -> Mapping[str, Mapping[str, Any]]:
    return MappingProxyType(data_files.amended("links", _source()["books"]))


@cache
def link_states() -> frozenset[str]:
    """Return the states of links, as two lower-case letters."""
    return frozenset(_source()["states"])


def _hosts(templates: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Map each host of a book's templates to its form in the template."""
    for host in templates.get("hosts", ()):
        yield host, ""
    for template in (templates[key] for key in TEMPLATES if key in templates):
        shape = template.split("/")[2]
        if "{state}" in shape:
            yield from ((shape.replace("{state}", state), shape) for state in link_states())
            # The same site without a state, which can be localised.
            yield shape.replace("{state}.", ""), shape
        else:
            yield shape, ""


@cache
def _state_hosts() -> Mapping[str, str]:
    """Map hosts, without www, to their templates with a state."""
    table: dict[str, str] = {}
    for templates in _templates().values():
        for host, shape in _hosts(templates):
            table[host.removeprefix("www.")] = shape or table.get(host.removeprefix("www."), "")
    return table


@cache
def hosts(book_id: str) -> frozenset[str]:
    """Return every host of a book, including those of states."""
    return frozenset(host for host, _ in _hosts(_templates().get(book(book_id).id, {})))


def _host(url: str) -> str:
    match = _URL.fullmatch(url)
    return match[1].lower() if match else ""


def allowed(url: str) -> bool:
    """Whether a link is safe: https, to a host in the catalog.

    Examples
    --------
    >>> allowed("https://sportsbook.draftkings.com/event/1"), allowed("https://sportsbook.draftkings.com.example.org/")
    (True, False)
    """
    return _host(url).removeprefix("www.") in _state_hosts()


@lru_cache(maxsize=65536)
def leads_to(book_id: str, url: str) -> bool:
    """Whether a link, perhaps one with `{state}`, is https and leads to a host of a book, or below one.

    Examples
    --------
    >>> leads_to("draftkings", "https://sportsbook.draftkings.com/event/1"), leads_to("fanduel", "https://kalshi.com/")
    (True, False)
    >>> leads_to("betmgm", "https://sports.{state}.betmgm.com/en/sports"), leads_to("betmgm", "javascript:alert(1)")
    (True, False)
    """
    host = _host(url.replace("{state}", "nj")).removeprefix("www.")
    own = {name.removeprefix("www.") for name in hosts(book_id)}
    return bool(host) and any(host == name or host.endswith(f".{name}") for name in own)


def allowed_pattern() -> str:
    """Return a regular expression of the links that `allowed` accepts, for API descriptions."""
    hosts_ = "|".join(re.escape(host) for host in sorted(_state_hosts()))
    return rf"^https://(www\.)?({hosts_})([/?#][!-\[\]-~]*)?$"


def localised(url: str, state: str) -> str:
    """Convert a link to the book's site for a state; empty if the link requires a state and none is given.

    Examples
    --------
    >>> localised("https://sports.{state}.betmgm.com/en/sports/events/7", "nj")
    'https://sports.nj.betmgm.com/en/sports/events/7'
    >>> localised("https://sports.nj.betmgm.com/en/sports", "pa"), localised("https://kalshi.com/", "pa")
    ('https://sports.pa.betmgm.com/en/sports', 'https://kalshi.com/')
    """
    if state not in link_states():
        return "" if "{state}" in url else url
    filled = url.replace("{state}", state)
    host = _host(filled)
    shape = _state_hosts().get(host.removeprefix("www."), "")
    return f"https://{shape.replace('{state}', state)}{filled[8 + len(host) :]}" if shape else filled


@lru_cache(maxsize=65536)
def link(book_id: str, *, event: str = "", market: str = "", selection: str = "", state: str = "") -> BetLink | None:
    """Return the most specific link that the ids allow; None for a book without links.

    Parameters
    ----------
    book_id
        Id, name or alias of a book.
    event, market, selection
        The book's own ids; empty if unknown.
    state
        Two lower-case letters; unknown states are ignored.

    Examples
    --------
    >>> link("draftkings", event="31025977", selection="0OU76_3")
    BetLink(url='https://sportsbook.draftkings.com/event/31025977?outcomes=0OU76_3', kind='outcome')
    >>> link("betmgm", state="nj"), link("corner_shop")
    (BetLink(url='https://sports.nj.betmgm.com/en/sports', kind='home'), None)
    """
    templates = _templates().get(book(book_id).id, {})
    ids = {"{event}": event, "{market}": market, "{selection}": selection, "{state}": state * (state in link_states())}
    for kind in KINDS:
        for key in (f"state_{kind}", kind):
            template = templates.get(key, "")
            if template and all(ids[place] for place in _PLACES if place in template):
                for place, id_ in ids.items():
                    template = template.replace(place, quote(id_, safe=""))
                return BetLink(template, kind)
    return None
