"""Normalisation of team, player and selection names for comparison.

Compatibility characters are decomposed (NFKD), marks and invisible characters (zero width, text direction) dropped,
letters lower-cased, letters without decomposition spelled out (ß ss, ø o, æ ae ...), digits of other scripts become 0
to 9, `&` becomes and, apostrophes and full stops are dropped (St. John's: st johns), everything else that is not a
letter or number becomes a space, and spaces are collapsed. A full stop between digits becomes a space, so that 2.5 is
not 25.

`normalise` takes a string and `normalised` a polars expression. They give equal results for every character in Python's
Unicode tables.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

# Before decomposition, which would turn these into a space and a mark, or leave them letters.
_APOSTROPHES = "'\u2019\u2018\u02bc\u02bb\u00b4`\u2032\u00b7"
# After lower-casing: letters without a decomposition, the final sigma, and the ampersand.
_LETTERS = {
    "ß": "ss", "ø": "o", "đ": "d", "ł": "l", "æ": "ae", "œ": "oe", "ı": "i", "þ": "th", "ð": "d", "ħ": "h",
    "ŧ": "t", "ŋ": "n", "ĸ": "k", "ə": "e", "ς": "σ", "&": " and ", "＆": " and ", "\u02bc": "",
}  # fmt: skip
# The zeros of other scripts' decimal digits (Unicode 14, without those that decompose); 1 to 9 follow each.
_ZEROS = (
    "\u0660\u06f0\u07c0\u0966\u09e6\u0a66\u0ae6\u0b66\u0be6\u0c66\u0ce6\u0d66\u0de6\u0e50\u0ed0\u0f20\u1040"
    "\u1090\u17e0\u1810\u1946\u19d0\u1a80\u1a90\u1b50\u1bb0\u1c40\u1c50\ua620\ua8d0\ua900\ua9d0\ua9f0\uaa50"
    "\uabf0\U000104a0\U00010d30\U00011066\U000110f0\U00011136\U000111d0\U000112f0\U00011450\U000114d0\U00011650"
    "\U000116c0\U00011730\U000118e0\U00011950\U00011c50\U00011d50\U00011da0\U00016a60\U00016ac0\U00016b50"
    "\U0001e140\U0001e2f0\U0001e950"
)
_LETTERS |= {chr(ord(zero) + digit): str(digit) for zero in _ZEROS for digit in range(10)}
_BETWEEN_DIGITS = "([0-9])[.]([0-9])"

_UNSEEN = {"Mn", "Mc", "Me", "Cf"}  # marks and format characters
_DROP = str.maketrans("", "", _APOSTROPHES)
_WRITE_OUT = str.maketrans(_LETTERS)
_POINT = re.compile(_BETWEEN_DIGITS)
_OTHER = re.compile(r"[\W_]+")


def plain(text: str) -> str:
    """Convert a name to the form of ids: lower case, with underscores for other characters.

    Examples
    --------
    >>> plain("Circa Sports"), plain(" IPL")
    ('circa_sports', 'ipl')
    """
    return _OTHER.sub("_", text.casefold()).strip("_")


@lru_cache(maxsize=65536)
def normalise(text: str) -> str:
    """Normalise a name for comparison.

    Examples
    --------
    >>> normalise("  Atlético-MADRID (Women) ")
    'atletico madrid women'
    >>> normalise("St. John's"), normalise("Bodø/Glimt"), normalise("Over 2.5")
    ('st johns', 'bodo glimt', 'over 2 5')
    """
    if text.isascii():
        plain = text.translate(_DROP).lower()
    else:
        parts = unicodedata.normalize("NFKD", text.translate(_DROP))
        plain = "".join([c for c in parts if unicodedata.category(c) not in _UNSEEN]).lower()
    plain = _POINT.sub(r"\1 \2", plain.translate(_WRITE_OUT)).replace(".", "")
    return _OTHER.sub(" ", plain).strip(" ")


@lru_cache(maxsize=16384)
def slug(text: str) -> str:
    """Convert a name to the form of ids of leagues and teams: normalised, with underscores for spaces."""
    return normalise(text).replace(" ", "_")


def normalised(names: pl.Expr) -> pl.Expr:
    """Normalise a column of names for comparison; null stays null.

    Examples
    --------
    >>> import polars as pl
    >>> pl.select(normalised(pl.lit("Bayern München II"))).item()
    'bayern munchen ii'
    """
    return (
        names.str.replace_all(f"[{_APOSTROPHES}]", "")
        .str.normalize("NFKD")
        .str.replace_all(r"[\p{M}\p{Cf}]+", "")
        .str.to_lowercase()
        .str.replace_many(list(_LETTERS), list(_LETTERS.values()))
        .str.replace_all(_BETWEEN_DIGITS, "$1 $2")
        .str.replace_all(".", "", literal=True)
        .str.replace_all(r"[^\p{L}\p{N}]+", " ")
        .str.strip_chars(" ")
    )
