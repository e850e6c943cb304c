"""One-pass parser for plain quotes: JSON text to codes and columns.

The term (wording and line) and the book of a price are looked up by 128-bit hashes of their text, which `Codes` maps to
codes; the caller parses texts that are new. Only common forms are supported: texts as strings, numbers as numbers,
times in ISO 8601, lists of flat objects in the fields of `links.LINKS`. For anything else, including invalid JSON,
`scan` returns None and the caller uses another parser.

Columns of the kernels:

- `text` (uint8 per character): the JSON
- `at`: place in the text
- `keys`, `codes` (2^k places): a table of `Codes`: hashes, and codes, negative where free
- `first`, `second`: the halves of a 128-bit hash
- `key` (uint64, 2): a hash to write
- `out`, `pair` (float64, 2): a number to write, and 1 if it needs a slower parser
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from oddsengine._jit import kernel
from oddsengine.board.rows import REJECTED
from oddsengine.columns import NO_TIME, NONE, SECOND, Bytes, Floats, Ints, Longs, Words
from oddsengine.identity.groups import step
from oddsengine.identity.layout import LIVE, SUSPENDED

TEXT, NUMBER, MOMENT, FLAG, UNFLAG, OTHER = range(6)
_QUOTE, _BACKSLASH, _COMMA, _COLON, _MINUS, _PLUS, _POINT, _SPACE = b'"\\,:-+. '
_LIST_START, _LIST_END, _OBJECT_START, _OBJECT_END = b"[]{}"
_NEWLINE, _RETURN, _TAB, _ZERO, _NINE = b"\n\r\t09"
_A, _E, _F, _L, _N, _R, _S, _T, _U, _UPPER_E, _UPPER_T, _UPPER_Z = b"aeflnrstuETZ"
_INVALID = -1  # the text is not of a supported form
_REPLACED = -1  # column of a long number that a later one of the same field replaces
_LINE = 0  # column of the line, a number
_PLACES = 255  # of the table of fields, a mask
_BAD = np.int64(NO_TIME) + 1
_DAYS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)
_TENS = 10.0 ** np.arange(23)


def _fives(least: int, most: int) -> Words:
    """The leading 128 bits of powers of five as two halves; powers below one are rounded up."""
    out = []
    for q in range(least, most + 1):
        if q < 0:
            power = 5**-q
            shift = (power - 1).bit_length()
            made = (1 << (shift + 127 if q >= -27 else 2 * shift + 128)) // power + 1
        else:
            made = 5**q << 128
        made >>= made.bit_length() - 128
        out.append((made >> 64, made & (1 << 64) - 1))
    return np.array(out, np.uint64)


_LEAST, _MOST = -40, 40
_FIVES = _fives(_LEAST, _MOST)


class ScannedColumns(NamedTuple):
    """Parsed columns of a text."""

    span: Longs  # (n, 2): offsets of the row's object in the text
    term: Ints  # -1: new
    book: Ints  # -1: new
    term_hash: Words  # (n, 2)
    book_hash: Words
    numbers: Floats  # (n, numbers), nan if missing
    moments: Longs  # (n, moments), `NO_TIME` if missing
    flags: Bytes  # bits defined in `rows`
    other: Bytes  # 1: the row has a field of `links.LINKS`


class Fields:
    """Field names by hash, with their kind and their index among the fields of that kind."""

    def __init__(self, texts: Sequence[str], book: str, numbers: Sequence[str], moments: Sequence[str],
                 other: Sequence[str], most: int) -> None:  # fmt: skip
        every = [
            *((name, TEXT, at) for at, name in enumerate((*texts, book))),
            *((name, NUMBER, at) for at, name in enumerate(numbers)),
            *((name, MOMENT, at) for at, name in enumerate(moments)),
            ("is_live", FLAG, LIVE),
            ("is_active", UNFLAG, SUSPENDED),
            ("rejected_upstream", FLAG, REJECTED),
            *((name, OTHER, 0) for name in other),
        ]
        self.texts, self.numbers, self.moments, self.most = len(texts), len(numbers), len(moments), most
        self.keys, self.kind, self.place = np.zeros(256, np.uint64), np.zeros(256, np.int64), np.zeros(256, np.int64)
        for name, kind, place in every:
            text = np.frombuffer(name.encode() + b'"', np.uint8)
            key = np.zeros(2, np.uint64)
            _string(text, 0, key)
            at = int(key[0]) & 255
            while self.keys[at]:
                at = (at + 1) & 255
            self.keys[at], self.kind[at], self.place[at] = key[0], kind, place


class Codes:
    """Hash table from the hashes of texts to codes."""

    def __init__(self) -> None:
        self.keys, self.codes = np.zeros((4096, 2), np.uint64), np.full(4096, -1, np.int32)
        self.size = 0

    def add(self, hashes: Words, codes: Ints) -> None:
        """Add some; hashes that are already present have the same code."""
        if (self.size + codes.size) * 2 > self.codes.size:
            keys, old = self.keys, self.codes
            size = 1 << (4 * (self.size + codes.size) - 1).bit_length()
            self.keys, self.codes = np.zeros((size, 2), np.uint64), np.full(size, -1, np.int32)
            held = np.flatnonzero(old >= 0)
            _enter(keys[held], old[held], self.keys, self.codes)
        self.size += _enter(hashes, codes, self.keys, self.codes)


@kernel
def _seek(first, second, keys, codes):
    """Place of a hash, or the free place where it belongs."""
    at = np.int64(first >> np.uint64(20)) & (codes.size - 1)
    while codes[at] >= 0 and (keys[at, 0] != first or keys[at, 1] != second):
        at = (at + 1) & (codes.size - 1)
    return at


@kernel
def _enter(hashes, new_codes, keys, codes):
    """Insert the hashes that are missing. Returns how many there were.

    `new_codes` are those of the `hashes`.
    """
    n_added = 0
    for i in range(new_codes.size):
        at = _seek(hashes[i, 0], hashes[i, 1], keys, codes)
        if codes[at] < 0:
            keys[at, 0], keys[at, 1], codes[at] = hashes[i, 0], hashes[i, 1], new_codes[i]
            n_added += 1
    return n_added


@kernel
def _string(text, at, key):
    """End of the string whose first character is at `at`, `_INVALID` if unterminated; `key` is set to its hash."""
    a, b = np.uint64(0xCBF29CE484222325), np.uint64(0x84222325CBF29CE4)
    while at < text.size:
        c = text[at]
        if c == _QUOTE:
            key[0], key[1] = step(a, b), step(b, a)
            return at
        if c < _SPACE:
            return _INVALID
        a = (a ^ np.uint64(c)) * np.uint64(0x100000001B3)
        b = (b ^ np.uint64(c)) * np.uint64(0x9E3779B97F4A7C15)
        at += 1
        if c == _BACKSLASH:
            if at == text.size:
                return _INVALID
            c = text[at]
            if c < _SPACE:
                return _INVALID
            a = (a ^ np.uint64(c)) * np.uint64(0x100000001B3)
            b = (b ^ np.uint64(c)) * np.uint64(0x9E3779B97F4A7C15)
            at += 1
    return _INVALID


@kernel
def _close(text, at):
    """End of the string whose first character is at `at`, `_INVALID` if unterminated."""
    while at < text.size:
        c = text[at]
        if c == _QUOTE:
            return at
        if c < _SPACE:
            return _INVALID
        at += 2 if c == _BACKSLASH and at + 1 < text.size and text[at + 1] >= _SPACE else 1
    return _INVALID


@kernel
def _same(text, at, other_at, size):
    """Whether the texts at both places are equal and a quotation mark follows the first.

    `other_at` is the second place, and `size` the number of characters.
    """
    if at + size >= text.size or text[at + size] != _QUOTE:
        return False
    for k in range(size):  # noqa: SIM110  a loop that compiles
        if text[at + k] != text[other_at + k]:
            return False
    return True


@kernel
def _blank(text, at):
    """First place from `at` on that is not white space."""
    while at < text.size and (text[at] == _SPACE or text[at] == _NEWLINE or text[at] == _RETURN or text[at] == _TAB):
        at += 1
    return at


@kernel
def _word(text, at, first, second, third, fourth):
    """Whether the text has these four letters at `at`.

    The letters are `first`, `second`, `third` and `fourth`.
    """
    return (
        at + 4 <= text.size
        and text[at] == first
        and text[at + 1] == second
        and text[at + 2] == third
        and text[at + 3] == fourth
    )


@kernel
def _times(a, b):
    """The 128-bit product of two 64-bit numbers, as two halves.

    The numbers are `a` and `b`.
    """
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
    middle = a1 * b0 + (a0 * b0 >> half)
    cross = a0 * b1 + (middle & low)
    return a1 * b1 + (middle >> half) + (cross >> half), a * b


@kernel
def _rounded(number, power, pair):
    """Round `number` * 10^`power` to the nearest double, into `pair[0]`; False if that needs more digits.

    The method of Eisel and Lemire: one product with the leading bits of the power of five, and a second one if those
    are not sufficient; `number` is not 0.

    `power` is the exponent of ten.
    """
    if power < _LEAST or power > _MOST:
        return False
    zeros = 0
    while number >> np.uint64(63) == np.uint64(0):
        number = number << np.uint64(1)
        zeros += 1
    high, low = _times(number, _FIVES[power - _LEAST, 0])
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):
        carry, _ = _times(number, _FIVES[power - _LEAST, 1])
        low = low + carry
        if low < carry:
            high = high + np.uint64(1)
    if low == np.uint64(0xFFFFFFFFFFFFFFFF) and power < -27:
        return False
    top_bit = high >> np.uint64(63)
    shift = top_bit + np.uint64(9)
    mantissa = high >> shift
    exponent = ((217_706 * power) >> 16) + 63 + np.int64(top_bit) - zeros + 1023
    if exponent <= 0 or exponent >= 2047:
        return False
    is_tie = low <= np.uint64(1) and -4 <= power <= 23 and mantissa & np.uint64(3) == np.uint64(1)
    if is_tie and mantissa << shift == high:  # exactly between two doubles
        mantissa = mantissa & ~np.uint64(1)
    mantissa = (mantissa + (mantissa & np.uint64(1))) >> np.uint64(1)
    if mantissa >= np.uint64(1) << np.uint64(53):
        mantissa = np.uint64(1) << np.uint64(52)
        exponent += 1
        if exponent >= 2047:
            return False
    bits = pair.view(np.uint64)
    bits[0] = (mantissa & ~(np.uint64(1) << np.uint64(52))) | np.uint64(exponent) << np.uint64(52)
    return True


@kernel
def _run(text, at, number, digits):
    """Read the digits at a place. Returns their end, the number with them appended, and its significant digits.

    `number` and `digits` are those so far; from the 19th digit on, digits are only counted.
    """
    while at < text.size and _ZERO <= text[at] <= _NINE:
        if digits > 0 or text[at] != _ZERO:
            digits += 1
        if digits < 19:
            number = number * 10 + np.int64(text[at] - _ZERO)
        at += 1
    return at, number, digits


@kernel
def _number(text, at, out):
    """End of a JSON number, `_INVALID` if it is none; `out` gets its value, and 1 if that needs a slower parser."""
    is_negative = text[at] == _MINUS
    if is_negative:
        at += 1
    first = at
    point, power = 0, 0
    at, number, digits = _run(text, at, 0, 0)
    if at == first or (text[first] == _ZERO and at - first > 1):
        return _INVALID
    if at < text.size and text[at] == _POINT:
        first = at + 1
        at, number, digits = _run(text, first, number, digits)
        point = at - first
        if point == 0:
            return _INVALID
    if at < text.size and (text[at] == _E or text[at] == _UPPER_E):
        at += 1
        is_minus = at < text.size and text[at] == _MINUS
        if at < text.size and (text[at] == _MINUS or text[at] == _PLUS):
            at += 1
        first = at
        while at < text.size and _ZERO <= text[at] <= _NINE:
            power = min(power * 10 + np.int64(text[at] - _ZERO), np.int64(1000))
            at += 1
        if at == first:
            return _INVALID
        power = -power if is_minus else power
    power -= point
    # An integer below 2^53 multiplied or divided by a power of ten up to 10^22 is rounded only once.
    is_exact = digits <= 15 and -22 <= power <= 22
    if is_exact:
        x = np.float64(number)
        out[0] = x * _TENS[power] if power >= 0 else x / _TENS[-power]
    else:
        is_exact = digits <= 18 and _rounded(np.uint64(number), power, out)
    if is_negative:
        out[0] = -out[0]
    out[1] = 0.0 if is_exact else 1.0
    return at


@kernel
def _digits(text, at, n):
    """The number given by n digits; `_INVALID` if one is not a digit.

    `n` is the number of digits.
    """
    x = np.int64(0)
    for k in range(n):
        c = np.int64(text[at + k]) - _ZERO
        if c < 0 or c > 9:
            return np.int64(_INVALID)
        x = x * 10 + c
    return x


@kernel
def _moment(text, a, z):
    """Microseconds of the ISO 8601 time between two places (UTC if it has no zone); `_BAD` for any other form.

    The places are `a` and `z`.
    """
    if z - a < 16 or text[a + 4] != _MINUS or text[a + 7] != _MINUS or text[a + 13] != _COLON:
        return _BAD
    if text[a + 10] != _UPPER_T and text[a + 10] != _SPACE:
        return _BAD
    year, month, day = _digits(text, a, 4), _digits(text, a + 5, 2), _digits(text, a + 8, 2)
    hour, minute = _digits(text, a + 11, 2), _digits(text, a + 14, 2)
    second, micro = np.int64(0), np.int64(0)
    at = a + 16
    if at < z and text[at] == _COLON:
        if at + 3 > z:
            return _BAD
        second = _digits(text, at + 1, 2)
        at += 3
        if at < z and text[at] == _POINT:
            at += 1
            n = 0
            while at < z and _ZERO <= text[at] <= _NINE:
                micro = micro * 10 + np.int64(text[at] - _ZERO)
                n += 1
                at += 1
            if n < 1 or n > 6:
                return _BAD
            for _ in range(6 - n):
                micro *= 10
    if year < 1 or month < 1 or month > 12 or day < 1 or hour < 0 or hour > 23:
        return _BAD
    if minute < 0 or minute > 59 or second < 0 or second > 59:
        return _BAD
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if day > _DAYS[month] + (1 if is_leap and month == 2 else 0):
        return _BAD
    zone = np.int64(0)
    if at < z and text[at] == _UPPER_Z:
        at += 1
    elif at < z and (text[at] == _PLUS or text[at] == _MINUS):
        colon = 1 if at + 3 < z and text[at + 3] == _COLON else 0
        if at + 5 + colon != z:
            return _BAD
        hours, minutes = _digits(text, at + 1, 2), _digits(text, at + 3 + colon, 2)
        if hours < 0 or hours > 23 or minutes < 0 or minutes > 59:
            return _BAD
        zone = (hours * 60 + minutes) * (-1 if text[at] == _MINUS else 1)
        at = z
    if at != z:
        return _BAD
    # Days since 1970 in years that begin in March.
    y = year - (1 if month <= 2 else 0)
    era = y // 400
    year_of_era = y - era * 400
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    days = era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468
    return (((days * 24 + hour) * 60 + minute - zone) * 60 + second) * SECOND + micro


@kernel
def _skip(text, at, pair):
    """End of a string, number or literal; `_INVALID` if invalid or anything else."""
    c = text[at]
    if c == _QUOTE:
        at = _close(text, at + 1)
        return at + 1 if at >= 0 else _INVALID
    if _word(text, at, _T, _R, _U, _E) or _word(text, at, _N, _U, _L, _L):
        return at + 4
    if _word(text, at, _F, _A, _L, _S) and at + 4 < text.size and text[at + 4] == _E:
        return at + 5
    return _number(text, at, pair) if c == _MINUS or _ZERO <= c <= _NINE else _INVALID


@kernel
def _list(text, at, pair):
    """End of a list of objects that have scalars, at least one each; `_INVALID` if invalid or anything else."""
    at = _blank(text, at + 1)
    if at < text.size and text[at] == _LIST_END:
        return at + 1
    while at < text.size and text[at] == _OBJECT_START:
        at = _blank(text, at + 1)
        while True:
            if at >= text.size or text[at] != _QUOTE:
                return _INVALID
            at = _close(text, at + 1)
            at = _blank(text, at + 1) if at >= 0 else text.size
            if at >= text.size or text[at] != _COLON:
                return _INVALID
            at = _blank(text, at + 1)
            at = _skip(text, at, pair) if at < text.size else _INVALID
            at = _blank(text, at) if at >= 0 else text.size
            if at < text.size and text[at] == _OBJECT_END:
                break
            if at >= text.size or text[at] != _COMMA:
                return _INVALID
            at = _blank(text, at + 1)
        at = _blank(text, at + 1)
        if at < text.size and text[at] == _LIST_END:
            return at + 1
        if at >= text.size or text[at] != _COMMA:
            return _INVALID
        at = _blank(text, at + 1)
    return _INVALID


@kernel
def _scan(
    text, f_keys, f_kind, f_place, texts, longest, t_keys, t_codes, b_keys, b_codes, hashes, span, term, book,
    term_hash, book_hash, numbers, moments, flags, other, long_numbers,
):  # fmt: skip
    """Parse a list of objects. Returns the numbers of rows and of long numbers, or `_INVALID` if it cannot.

    - `f_keys`, `f_kind`, `f_place` (256 places): a hash table of the fields: hash of the name (0: free), kind such as
      `TEXT`, and column among those of its kind, or bit of the flag
    - `texts`: number of texts of a term; the text after these is the book
    - `longest`: the most characters of a text
    - `t_keys`, `t_codes`, `b_keys`, `b_codes`: tables of the terms and books
    - `hashes` (uint64, texts + 1 by 2): scratch array for the texts of a row
    - `span`, `term`, `book`, `term_hash`, `book_hash`, `numbers`, `moments`, `flags`, `other`: the columns of
      `ScannedColumns` to write
    - `long_numbers` (int64, n by 4): numbers that need a slower parser: row, column or `_REPLACED`, start and end
    """
    key, pair = np.empty(2, np.uint64), np.empty(2)
    previous_fields = np.full((3, 64), NONE)  # fields of the previous row, in order: offset and size of the name, field
    n, n_long, failure = 0, 0, (_INVALID, 0)
    at = _blank(text, 0)
    if at >= text.size or text[at] != _LIST_START:
        return failure
    at = _blank(text, at + 1)
    if at < text.size and text[at] == _LIST_END:
        return (0 if _blank(text, at + 1) == text.size else _INVALID), 0
    while True:
        if at >= text.size or text[at] != _OBJECT_START:
            return failure
        span[n, 0] = at
        for k in range(hashes.shape[0]):
            hashes[k, 0], hashes[k, 1] = np.uint64(0), np.uint64(0)
        for k in range(numbers.shape[1]):
            numbers[n, k] = np.nan
        for k in range(moments.shape[1]):
            moments[n, k] = NO_TIME
        flags[n], other[n] = 0, 0
        row_numbers, position = n_long, 0
        at = _blank(text, at + 1)
        while True:
            if at >= text.size or text[at] != _QUOTE:
                return failure
            at += 1
            if (
                position < previous_fields[0].size
                and previous_fields[1, position] >= 0
                and _same(text, at, previous_fields[0, position], previous_fields[1, position])
            ):
                at += previous_fields[1, position]
                field = previous_fields[2, position]
            else:
                first = at
                at = _string(text, at, key)
                if at < 0:
                    return failure
                field = np.int64(key[0] & np.uint64(_PLACES))
                while f_keys[field] != key[0] and f_keys[field] != np.uint64(0):
                    field = (field + 1) & _PLACES
                if position < previous_fields[0].size:
                    previous_fields[0, position], previous_fields[1, position], previous_fields[2, position] = (
                        first,
                        at - first,
                        field,
                    )
            position += 1
            is_known = f_keys[field] != np.uint64(0)
            kind, place = f_kind[field], f_place[field]
            at = _blank(text, at + 1)
            if at >= text.size or text[at] != _COLON:
                return failure
            at = _blank(text, at + 1)
            if at >= text.size:
                return failure
            if not is_known:
                at = _skip(text, at, pair)
                if at < 0:
                    return failure
            elif _word(text, at, _N, _U, _L, _L):
                at += 4
                if kind == TEXT:
                    hashes[place, 0], hashes[place, 1] = np.uint64(0), np.uint64(0)
                elif kind == NUMBER:
                    numbers[n, place] = np.nan
                    for j in range(row_numbers, n_long):
                        if long_numbers[j, 1] == place:
                            long_numbers[j, 1] = _REPLACED
                elif kind == MOMENT:
                    moments[n, place] = NO_TIME
                elif kind < OTHER:
                    flags[n] &= ~np.uint8(place)
            elif kind == TEXT:
                if text[at] != _QUOTE:
                    return failure
                first = at + 1
                at = _string(text, first, key)
                if at < 0 or at - first > longest:
                    return failure
                hashes[place, 0], hashes[place, 1] = key[0], key[1]
                if at == first:  # an empty text counts as null
                    hashes[place, 0], hashes[place, 1] = np.uint64(0), np.uint64(0)
                at += 1
            elif kind == NUMBER:
                first = at
                if text[at] != _MINUS and not _ZERO <= text[at] <= _NINE:
                    return failure
                at = _number(text, at, pair)
                if at < 0:
                    return failure
                numbers[n, place] = pair[0]
                for j in range(row_numbers, n_long):
                    if long_numbers[j, 1] == place:
                        long_numbers[j, 1] = _REPLACED
                if pair[1] != 0.0:
                    if place == _LINE or n_long == long_numbers.shape[0]:  # a line is part of the term
                        return failure
                    (
                        long_numbers[n_long, 0],
                        long_numbers[n_long, 1],
                        long_numbers[n_long, 2],
                        long_numbers[n_long, 3],
                    ) = n, place, first, at
                    n_long += 1
            elif kind == MOMENT:
                if text[at] != _QUOTE:
                    return failure
                first = at + 1
                at = _close(text, first)
                if at < 0:
                    return failure
                moments[n, place] = _moment(text, first, at)
                if moments[n, place] == _BAD:
                    return failure
                at += 1
            elif kind < OTHER:
                is_true = _word(text, at, _T, _R, _U, _E)
                at = _skip(text, at, pair) if is_true or text[at] == _F else _INVALID
                if at < 0:
                    return failure
                flags[n] &= ~np.uint8(place)
                if is_true == (kind == FLAG):
                    flags[n] |= np.uint8(place)
            else:
                other[n] = 1
                at = _list(text, at, pair) if text[at] == _LIST_START else _skip(text, at, pair)
                if at < 0:
                    return failure
            at = _blank(text, at)
            if at >= text.size:
                return failure
            if text[at] == _OBJECT_END:
                break
            if text[at] != _COMMA:
                return failure
            at = _blank(text, at + 1)
        at += 1
        span[n, 1] = at
        a, b = np.uint64(1), np.uint64(2)
        for k in range(texts):
            a, b = step(a, hashes[k, 0]), step(b, hashes[k, 1])
        line = numbers[n, 0]
        bits = np.uint64(0x7FF8000000000001)
        if not np.isnan(line):
            pair[0] = line + 0.0  # -0.0 is 0.0
            bits = pair.view(np.uint64)[0]
        a, b = step(a, bits), step(b, bits)
        term_hash[n, 0], term_hash[n, 1] = a, b
        book_hash[n, 0], book_hash[n, 1] = hashes[texts, 0], hashes[texts, 1]
        term[n] = t_codes[_seek(a, b, t_keys, t_codes)]
        book[n] = b_codes[_seek(hashes[texts, 0], hashes[texts, 1], b_keys, b_codes)]
        n += 1
        at = _blank(text, at)
        if at < text.size and text[at] == _LIST_END:
            return (n if _blank(text, at + 1) == text.size else _INVALID), n_long
        if at >= text.size or text[at] != _COMMA:
            return failure
        at = _blank(text, at + 1)


def scan(text: bytes, fields: Fields, terms: Codes, books: Codes) -> ScannedColumns | None:
    """Parse the JSON text of a list of rows; None if anything in it is not in a supported form."""
    most = text.count(b"{")
    if not text.isascii():
        try:
            text.decode()
        except UnicodeDecodeError:
            return None
    out = ScannedColumns(
        np.empty((most, 2), np.int64), np.empty(most, np.int32), np.empty(most, np.int32),
        np.empty((most, 2), np.uint64), np.empty((most, 2), np.uint64), np.empty((most, fields.numbers)),
        np.empty((most, fields.moments), np.int64), np.empty(most, np.uint8), np.empty(most, np.uint8),
    )  # fmt: skip
    long = np.empty((most * fields.numbers, 4), np.int64)
    n, n_long = _scan(
        np.frombuffer(text, np.uint8), fields.keys, fields.kind, fields.place, fields.texts, fields.most,
        terms.keys, terms.codes, books.keys, books.codes, np.empty((fields.texts + 1, 2), np.uint64), *out, long,
    )  # fmt: skip
    if n < 0:
        return None
    long = long[:n_long][long[:n_long, 1] >= 0]
    if long.size:
        out.numbers[long[:, 0], long[:, 1]] = [float(text[a:b]) for a, b in long[:, 2:].tolist()]
    return ScannedColumns._make(column[:n] for column in out)
