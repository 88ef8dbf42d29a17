"""A program that writes a database's memories and is killed: `python killed.py DATABASE`."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from datetime import timedelta
from typing import Any

from doubles import answering

from langmem_ext import MemoryGenerator, MessageLog


def topics(prompt: str) -> dict[str, Any]:
    """What the double remembers: the number that the user has said."""
    number = prompt.split("question ")[1].split(".")[0]
    os.write(1, f"{number}\n".encode())  # in one piece, from whichever thread
    return {"main_topics": [f"topic {number}"]}


if __name__ == "__main__":
    with closing(MessageLog.open(sys.argv[1])) as log:
        MemoryGenerator(log, answering(topics)).generate_needing(idle=timedelta(0))
    print("done", flush=True)
