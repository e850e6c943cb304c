"""What catalog files of your own change: key by key, against the catalog of the package or against other files."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from oddsengine.catalog.data_files import GROWING, Changes, laid_over
from oddsengine.catalog.markets import shipped_meaning
from oddsengine.catalog.own_fields import SECTIONS, path_of, shipped_entries


class Difference(NamedTuple):
    """A key that two catalogs do not have alike; of lists that files extend, only the names that differ."""

    section: str
    id: str
    entry: str  # such as `books.corner_shop`
    key: str
    before: Any  # None: it has no such key
    after: Any


def differences(before: Changes, after: Changes) -> list[Difference]:
    """What is different in the catalog with some changes, from that with others; without any it is the package's.

    Parameters
    ----------
    before, after
        What files say, as `read` and `load` return it.

    Examples
    --------
    >>> own = {"books": {"fanduel": {"commission": 0.02, "aliases": ["fd_us"]}}}
    >>> [each[2:] for each in differences({}, own)]
    [('books.fanduel', 'aliases', None, ['fd_us']), ('books.fanduel', 'commission', None, 0.02)]
    """
    return [
        Difference(section, id_, path_of(section, id_, {**one, **other}), key, *values)
        for section in SECTIONS
        for id_, one, other in _entries(section, before, after)
        for key in dict.fromkeys((*other, *one))
        if (values := _values(key, one, other)) is not None
    ]


def _entries(section: str, before: Changes, after: Changes) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield each entry that one of two catalogs changes, as it is in both."""
    old, new = before.get(section, {}), after.get(section, {})
    shipped = shipped_entries(section) if old or new else {}
    for id_ in dict.fromkeys((*new, *old)):
        entry = _shipped_market(id_) if section == "markets" else shipped.get(id_, {})
        yield id_, laid_over(entry, _decided(old.get(id_, {}))), laid_over(entry, _decided(new.get(id_, {})))


def _shipped_market(name: str) -> dict[str, str]:
    meaning = shipped_meaning(name)
    return {"means": meaning} if meaning else {}


def _decided(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    return {} if entry.get("means") == "" else entry


def _values(key: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[Any, Any] | None:
    """The two values of a key; None if they are equal."""
    before, after = one.get(key), other.get(key)
    if key in GROWING:
        old, new = before or (), after or ()
        before, after = [name for name in old if name not in new], [name for name in new if name not in old]
        return (before or None, after or None) if before or after else None
    return None if before == after else (before, after)
