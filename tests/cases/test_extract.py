"""A value is read from what people say as they meant it, and from nothing else.

Keys of a case:

- text: the message.
- param: what is asked for: a name from the top of the file, or its declaration.
- asks: the question; `true`: the parameter's own. Without one the message answers nothing, and
  only what it clearly marks is a value.
- others: parameters whose values the message may hold, too.
- filled: values that are known already.
- now: when it is said.
- value: what is read; null: nothing.
- params: instead of `param`: several that are asked for at once; the value is one for each.
- status: why nothing is read.
- sure: whether the value counts without being confirmed.
- raw, choices, problem, half: as an `Extraction` has them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from case_files import CaseFile

from langmem_ext import Extraction, Param, Reply, extract
from langmem_ext.waiting.catalog.param import doubtful_below

FILES = ("choices", "codes", "days", "messages", "names", "numbers", "texts", "times")


class Reader:
    """Reads the cases of a file."""

    def __init__(self, file: CaseFile) -> None:
        self.now = file.data["now"]
        self.params = {key: declared(key, data) for key, data in file.data["params"].items()}

    def found(self, case: dict[str, Any]) -> dict[str, Any]:
        """What is found for each key that the case expects."""
        if names := case.get("params"):
            params = [self.params[name] for name in names]
            read = {param.name: self.read(case, param, params).value for param in params}
            return {"value": read}
        given = case["param"]
        param = self.params[given] if isinstance(given, str) else declared("", given)
        others = [self.params[name] for name in case.get("others", ())]
        seen = self.read(case, param, others)
        if seen.span is not None:
            assert seen.raw == case["text"][slice(*seen.span)]
        found = {
            "value": seen.value,
            "status": seen.status,
            "sure": seen.confidence >= doubtful_below(param),
            "choices": list(seen.choices),
            "raw": seen.raw,
            "problem": seen.problem,
            "half": seen.half,
        }
        return {key: found[key] for key in found if key in case or key == "value"}

    def read(self, case: dict[str, Any], param: Param, others: list[Param]) -> Extraction:
        asks = case.get("asks", "")
        reply = Reply(
            case["text"],
            prompt=param.prompt if asks is True else asks,
            others=[other for other in others if other is not param],
            filled=case.get("filled", {}),
            now=datetime.fromisoformat(case.get("now", self.now)),
        )
        return extract(param, reply)


def declared(name: str, data: dict[str, Any]) -> Param:
    return Param.model_validate({"name": name, **data})


@pytest.mark.parametrize("name", FILES)
def test_what_is_said_is_read_as_it_was_meant(name: str) -> None:
    file = CaseFile(name)
    assert (wrong := file.wrong(Reader(file).found)) == "", f"\n{wrong}"
