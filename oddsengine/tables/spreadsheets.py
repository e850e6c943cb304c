"""Texts in CSV files that are opened in a spreadsheet."""

import re

_SPACE = r"[\s\x00-\x1f\ufeff\"]*"
_BEGINS = re.compile(rf"[\t\r\n]|{_SPACE}([=@＝＠＋－]|[+-](?!(\d+\.?\d*|\.\d+)\Z))")
_CONTAINS = re.compile(rf"[;|\t\r\n]{_SPACE}[=@＝＠＋－+-]")


def safe_text(text: str) -> str:
    """A text with ' before it if a spreadsheet would take it, or a part of it, for a formula.

    Some spreadsheets also divide cells at semicolons or tabs. Numbers are left alone.

    Examples
    --------
    >>> safe_text("=1+1"), safe_text("Over;=1+1"), safe_text("-110"), safe_text("Over; 2.5")
    ("'=1+1", "'Over;=1+1", '-110', 'Over; 2.5')
    """
    return f"'{text}" if _BEGINS.match(text) or _CONTAINS.search(text) else text
