"""Numerical ids: dense, complete and frozen."""

import hashlib
from pathlib import Path

import oddsengine
from oddsengine import catalog
from oddsengine.catalog.numerical_ids import DOMAINS, missing

FILE = Path(oddsengine.__file__).parent / "catalog" / "numbers.csv"
FROZEN_LINES, FROZEN = 1191, "27a3f7352176bd946ce8642b2594514f4927138170f6764bf2a4d0f4e26ba37c"
"""The lines that were published, and their hash: what stands there is never changed."""


def test_published_lines_are_frozen() -> None:
    lines = FILE.read_bytes().splitlines(keepends=True)
    assert len(lines) >= FROZEN_LINES
    assert hashlib.sha256(b"".join(lines[:FROZEN_LINES])).hexdigest() == FROZEN


def test_every_id_of_the_catalog_has_a_number() -> None:
    assert missing() == [], "append what `python -m oddsengine.catalog.numerical_ids` prints"


def test_numbers_are_dense_and_used_once() -> None:
    every: dict[str, list[int]] = {domain: [] for domain in DOMAINS}
    for line in FILE.read_text(encoding="utf-8").splitlines()[1:]:
        domain, id_ = line.split(",")
        number = catalog.numerical_id(domain, id_)
        assert number is not None
        every[domain].append(number)
    for numbers in every.values():
        assert numbers == list(range(1, len(numbers) + 1))
