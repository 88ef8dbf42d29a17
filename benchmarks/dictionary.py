"""How the compression dictionary was made, and what it saves on other texts.

    python -m benchmarks.dictionary make out.zdict README.md CHANGELOG.md docs/*/*.md
        needs compression.zstd or backports.zstd
    python -m benchmarks.dictionary weigh conversations.json episodes.jsonl …
        any JSON or JSON lines; its texts are weighed

`dictionary.txt` is what stands in the dictionary: what conversations, programs and data say
everywhere. The files named after it are only counted, for how often each letter follows. A
dictionary that was released is never made anew: rows that it compressed need it to the byte.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.text import LONG, SHORT, dialogue
from langmem_ext.storage.rows.compression import LEVEL, shrink

CONTENT = Path(__file__).with_suffix(".txt")
MOST = 32 * 1024


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dictionary", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser("make")
    made.add_argument("out", type=Path)
    made.add_argument("samples", type=Path, nargs="+")
    commands.add_parser("weigh").add_argument("corpora", type=Path, nargs="*")
    args = parser.parse_args()
    if args.command == "make":
        args.out.write_bytes(make([text for path in args.samples for text in samples(path)]))
        return 0
    weighed = {"docstrings, short": dialogue(1600, SHORT), "docstrings, long": dialogue(200, LONG)}
    for name, messages in weighed.items():
        tell(name, [str(message.content) for message in messages])
    for path in args.corpora:
        tell(path.name, list(texts(path)))
    return 0


def make(counted: list[str]) -> bytes:
    """A dictionary with the content of `dictionary.txt` and the letter counts of other texts."""
    zstd = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    content = zstd.ZstdDict(CONTENT.read_bytes(), is_raw=True)
    made: bytes = zstd.finalize_dict(
        content, [text.encode() for text in counted], MOST, LEVEL
    ).dict_content
    return made


def samples(path: Path) -> Iterator[str]:
    """Paragraphs of a text, or sentences that stand in a program."""
    if path.suffix != ".py":
        yield from (part for part in path.read_text().split("\n\n") if len(part) > 60)
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
            if len(text) > 30 and "\n" not in text and text[0].isupper() and text[-1] in ".?!":
                yield text


def texts(path: Path) -> Iterator[str]:
    """The strings of a file, however deep they stand."""
    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    for line in lines:
        yield from _strings(json.loads(line))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def tell(name: str, found: list[str]) -> None:
    """Print what texts of several lengths shrink to."""
    print(f"{name}: {len(found):,} texts")
    bounds = (0, 64, 128, 256, 512, 2048, 1 << 62)
    for low, high in zip(bounds, bounds[1:], strict=False):
        bodies = [body for body in (text.encode() for text in found) if low <= len(body) < high]
        if bodies:
            size = sum(len(shrink(body)) for body in bodies) / sum(map(len, bodies))
            print(f"  from {low:5} bytes: {len(bodies):6,} texts, to {size:.3f} of their bytes")


if __name__ == "__main__":
    sys.exit(main())
