"""The commands on API keys: `keys create`, `list`, `revoke`, `rotate`, `tier`, `export`, `import`.

The service is imported only when one of them runs.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oddsengine.commands.output import echo, new_file, service_needed, terminal
from oddsengine.commands.text_tables import Column, table

if TYPE_CHECKING:
    from oddsengine_service.accounts.keys import CreatedKey, KeyStore, Record

_LIST = (
    Column("Id"), Column("Account", least=12), Column("Name", drop=3, least=8), Column("Tier"),
    Column("Rate", right=True), Column("Streams", right=True), Column("Status"),
    Column("Created", drop=2), Column("Used", drop=1),
)  # fmt: skip
_SHOWN_ONCE = "Store the key now: it cannot be shown again."


def keys_command(arguments: argparse.Namespace) -> None:
    with service_needed():
        from oddsengine_service.accounts import keys  # noqa: PLC0415  see the module's docstring
        from oddsengine_service.settings import load, make_folder  # noqa: PLC0415
    settings = load(arguments.config, os.environ)
    file = Path(settings.data.folder) / settings.keys.file
    if arguments.action not in ("create", "import") and not file.exists() and settings.scale is None:
        if arguments.action != "list":
            raise ValueError(f"{file} does not exist; create a key with `oddsengine keys create`")
        _print_list([], arguments)
        return
    make_folder(settings)
    if settings.scale is None:
        if arguments.action == "create" and not (file.exists() or arguments.json):
            sys.stderr.write(f"oddsengine: {file} is new; a node accepts the keys of its own data folder only\n")
        store = keys.open_store(settings)
        close = store.close
    else:
        from oddsengine_service.scale.sharing import open_keys  # noqa: PLC0415

        store, close = open_keys(settings, os.environ)
    try:
        _ACTIONS[arguments.action](store, arguments)
    finally:
        close()


def _create(store: "KeyStore", arguments: argparse.Namespace) -> None:
    from oddsengine_service.accounts.keys import KeyTerms  # noqa: PLC0415

    terms = KeyTerms(arguments.tier, _features(arguments), arguments.streaming, arguments.rate, arguments.streams)
    _print_created(store.create(arguments.account, terms, arguments.name), arguments)


def _list(store: "KeyStore", arguments: argparse.Namespace) -> None:
    records = store.list(arguments.account)
    _print_list([record for record in records if record.active or arguments.all], arguments)


def _revoke(store: "KeyStore", arguments: argparse.Namespace) -> None:
    _print_record(store.revoke(_ident(arguments)), "revoked", arguments)


def _rotate(store: "KeyStore", arguments: argparse.Namespace) -> None:
    _print_created(store.rotate(_ident(arguments), grace=arguments.grace), arguments)


def _tier(store: "KeyStore", arguments: argparse.Namespace) -> None:
    changed: dict[str, Any] = {"tier": arguments.tier}
    if arguments.streaming is not None:
        changed["streaming"] = arguments.streaming
    for name in ("rate", "streams"):
        if getattr(arguments, name) is not None:
            changed[name] = None if getattr(arguments, name) == "tier" else getattr(arguments, name)
    if arguments.features is not None:
        changed["features"] = None if arguments.features == ["tier"] else _features(arguments)
    _print_record(store.retier(_ident(arguments), **changed), "changed", arguments)


def _export(store: "KeyStore", arguments: argparse.Namespace) -> None:
    rows = store.export_rows()
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    if arguments.file == "-":
        echo(text)
        return
    with new_file(Path(arguments.file)) as out:
        out.write(text.encode())
    echo(f"exported {len(rows):,} keys; back up the pepper too, they cannot be used without it\n")


def _import(store: "KeyStore", arguments: argparse.Namespace) -> None:
    lines = Path(arguments.file).read_text(encoding="utf-8").splitlines()
    try:
        rows = [json.loads(line) for line in lines if line.strip()]
    except ValueError as error:
        raise ValueError(f"{arguments.file} must have one JSON object per line: {error}") from None
    echo(f"imported {store.merge_rows(rows, offer=True):,} keys\n")


_ACTIONS = {
    "create": _create, "list": _list, "revoke": _revoke, "rotate": _rotate, "tier": _tier, "export": _export,
    "import": _import,
}  # fmt: skip


def _ident(arguments: argparse.Namespace) -> str:
    """Return the id of a key, given its id or the whole key."""
    return str(arguments.id).partition(".")[0]


def _features(arguments: argparse.Namespace) -> frozenset[str] | None:
    return None if arguments.features is None else frozenset(arguments.features)


# ---- output ----


def _plain(record: "Record") -> dict[str, Any]:
    caller, terms = record.caller, record.terms
    return {
        "id": record.id, "account": record.account, "name": record.name, "tier": terms.tier,
        "features": sorted(caller.features), "streaming": terms.streaming, "rate": caller.rate,
        "streams": caller.streams, "is_active": record.active, "created_at": f"{record.created_at:%Y-%m-%dT%H:%M:%SZ}",
        "updated_at": f"{record.updated_at:%Y-%m-%dT%H:%M:%SZ}",
        "last_used": None if record.used is None else str(record.used),
    }  # fmt: skip


def _print_json(records: Any) -> None:
    echo(json.dumps(records, indent=2, ensure_ascii=False) + "\n")


def _print_created(made: "CreatedKey", arguments: argparse.Namespace) -> None:
    if arguments.json:
        _print_json({**_plain(made.record), "key": made.key})
        return
    record = made.record
    print(f"{record.id} of {record.account}: tier {record.terms.tier}. {_SHOWN_ONCE}", file=sys.stderr)
    echo(f"{made.key}\n")


def _print_record(record: "Record", action: str, arguments: argparse.Namespace) -> None:
    if arguments.json:
        _print_json(_plain(record))
        return
    caller = record.caller
    echo(f"{action} {record.id} of {record.account}: tier {caller.tier.id}, {caller.rate:,} requests per minute, "
        f"{caller.streams} streams\n")  # fmt: skip


def _print_list(records: "list[Record]", arguments: argparse.Namespace) -> None:
    if arguments.json:
        _print_json([_plain(record) for record in records])
        return
    groups = [
        [[
            record.id, record.account, record.name, record.terms.tier, f"{record.caller.rate:,}",
            str(record.caller.streams), "active" if record.active else "revoked", f"{record.created_at:%Y-%m-%d}",
            "never" if record.used is None else str(record.used),
        ]]
        for record in records
    ]  # fmt: skip
    echo("\n".join(table(_LIST, groups, terminal())) + "\n" if groups else "none\n")
