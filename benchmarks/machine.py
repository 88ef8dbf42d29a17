"""What a run needs to say about where it ran."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.record import Machine

PACKAGES = (
    "langmem-ext",
    "langgraph",
    "langgraph-checkpoint",
    "langgraph-checkpoint-sqlite",
    "langgraph-checkpoint-postgres",
    "langchain-core",
    "pydantic",
    "ormsgpack",
    "aiosqlite",
    "psycopg",
)


def load() -> float:
    """The load average of the last minute."""
    return round(os.getloadavg()[0], 2)


def machine() -> Machine:
    """This machine, without its name."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Machine(
        cpu=_cpu(),
        cores=(
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        ),
        memory_gb=round(memory / 2**30, 1),
        system=f"{platform.system()} {platform.machine()}",
    )


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.processor() or "unknown",
    )


def versions() -> dict[str, str]:
    """Versions of what was measured."""
    found = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def commit() -> str | None:
    """The measured commit, with a plus sign if the tree had changes; None outside a repository."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=here, capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        return git("rev-parse", "--short", "HEAD") + (
            "+" if git("status", "--porcelain", "--", "../langmem_ext") else ""
        )
    except (OSError, subprocess.CalledProcessError):
        return None
