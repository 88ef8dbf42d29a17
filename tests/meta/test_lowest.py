"""What `make lowest` installs is what pyproject.toml claims to work with."""

from __future__ import annotations

import re
import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from repository import ROOT


def test_the_pins_are_the_lower_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [
        text
        for name, texts in project["optional-dependencies"].items()
        if name != "all"
        for text in texts
    ]
    bounds: dict[str, Version] = {}
    for requirement in map(Requirement, [*project["dependencies"], *extras]):
        if requirement.name == project["name"]:  # an extra that takes in another
            continue
        (lowest,) = [one.version for one in requirement.specifier if one.operator == ">="]
        bounds[canonicalize_name(requirement.name)] = Version(lowest)
    lines = (ROOT / "tests" / "lowest.txt").read_text(encoding="utf-8").splitlines()
    pins = {
        canonicalize_name(found[1]): Version(found[2])
        for line in lines
        if (found := re.fullmatch(r"([\w-]+)==([\w.]+)", line))
    }
    # A post-release is the same release, mended.
    assert {name: Version(pin.base_version) for name, pin in pins.items()} == bounds
