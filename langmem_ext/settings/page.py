"""The table of settings in `docs/settings.md`: `python -m langmem_ext.settings.page docs/settings.md` writes it anew."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from langmem_ext.settings.field import about, written
from langmem_ext.settings.model import Settings

BEGIN: Final = "<!-- The table is made from the model's own descriptions by `make fix`. -->"
END: Final = "<!-- The end of the table. -->"


def table() -> str:
    """The settings as a table of Markdown."""
    return "\n".join(["| setting | default | takes | off | in effect | what it governs |", "|---|---|---|---|---|---|", *_rows()])


def with_table(page: str) -> str:
    """The page with the table as it is now."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"


def _rows() -> Iterator[str]:
    for name, field in Settings.model_fields.items():
        special = about(field)
        default = f"`{written(field.default)}`" if field.default != "" else "empty"
        off = "" if special.off is None else f"`{special.off}`"
        words = " ".join((field.description or "").split())
        yield f"| `{name}` | {default} | {_takes(field)} | {off} | {'yes' if special.in_effect else 'not yet'} | {words} |"


def _takes(field: FieldInfo) -> str:
    """The kind of value, in a word or two."""
    if get_origin(field.annotation) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(field.annotation))
    special = about(field)
    if special.is_path:
        return "path or URL" if special.variable else "path"
    return special.unit or {bool: "`true`, `false`", str: "text"}.get(field.annotation, "list of names")  # type: ignore[arg-type]


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(with_table(path.read_text(encoding="utf-8")), encoding="utf-8")
