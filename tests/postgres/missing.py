"""What a test needs and this machine has not: a reason to skip, on CI to fail."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest


def missing(what: str) -> NoReturn:
    """Skip the test that runs, saying why; with CI=true fail it: there nothing is left out
    unseen.
    """
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} (CI=true: a test that needs it may not be skipped)", pytrace=False)
    pytest.skip(what)


def find(program: str, package: str, *folders: str) -> str:
    """Where a program is: on the PATH, or in one of the folders where systems keep servers."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *folders])
    return shutil.which(program, path=path) or missing(
        f"{program} is not there: apt-get install {package}"
    )
