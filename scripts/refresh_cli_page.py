"""Run the commands on the page of the command line and insert their output: `python scripts/refresh_cli_page.py`.

The times in the summaries stay as they are; `tests/test_docs.py` compares everything else.
"""

import contextlib
import io
import re
import shlex
from pathlib import Path

from oddsengine.commands import output, price, scan
from oddsengine_cli import main

PAGE = Path(__file__).parent.parent / "docs" / "cli.md"
WIDTH = 100  # of the terminal that the examples show
_TIME = re.compile(r"\d+\.\d\d s$", re.MULTILINE)


def _fresh(block: re.Match[str]) -> str:
    """Return a command's block with its current output."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        main(shlex.split(block["command"])[1:])
    time = _TIME.search(block["shown"])
    text = _TIME.sub(time[0], printed.getvalue()) if time else printed.getvalue()
    return f"```console\n$ {block['command']}\n{text}```"


def refresh() -> None:
    """Rewrite the page."""
    for module in (scan, price, output):
        vars(module)["terminal"] = lambda: WIDTH
    text = PAGE.read_text(encoding="utf-8")
    pattern = r"^```console\n\$ (?P<command>oddsengine [^\n]*)\n(?P<shown>.*?)^```$"
    PAGE.write_text(re.sub(pattern, _fresh, text, flags=re.MULTILINE | re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    refresh()
