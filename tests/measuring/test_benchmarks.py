"""The benchmarks at their smallest: every shape runs for every contender and gives figures, and a
record can be kept and read.

No test looks at a time.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from repository import ROOT

from benchmarks import machine, results
from benchmarks.contenders import CONTENDERS, TITLES
from benchmarks.lanes import Step, Work
from benchmarks.record import Record, ShapeResult
from benchmarks.shape import Aim, Shape
from benchmarks.shapes import SHAPES

pytestmark = pytest.mark.process


def recorded(*shapes: ShapeResult) -> Record:
    return Record(
        date="2026-01-31T12:00:00+00:00",
        commit="abc1234",
        machine=machine.machine(),
        versions=machine.versions(),
        shapes=list(shapes),
    )


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_gives_figures_for_every_contender(name: str) -> None:
    shape = SHAPES[name]
    result = shape.run(small=True, apart=False)
    assert result.errors == {}
    assert result.figures.keys() == set(shape.contenders) & CONTENDERS.keys()
    assert "delta" in result.figures
    for figures in result.figures.values():
        assert figures
        assert all(math.isfinite(value) and value >= 0 for value in figures.values())
    read = Record.model_validate_json(recorded(result).model_dump_json())
    assert read.shapes == [result]


def test_every_aim_is_about_a_figure_that_its_shape_gives() -> None:
    shape = SHAPES["fan-out"]
    result = shape.run(small=True, apart=False)
    assert [verdict.what for verdict in result.verdicts] == [aim.what for aim in shape.aims]
    assert {verdict.against for verdict in result.verdicts} <= {None, *TITLES}


def test_an_aim_is_judged_by_its_ratio_where_there_are_figures() -> None:
    figures = {
        "delta": {"cpu": 10.0, "turns_per_s": 40.0, "errors": 0.0},
        "memory": {"cpu": 20.0, "turns_per_s": 10.0},
    }
    for aim, ratio, reached in (
        (Aim("no more than", "cpu", "memory", at_most=1.4), 0.5, True),
        (Aim("so many times better", "cpu", "memory", at_least=2.5), 2.0, False),
        (Aim("where more is better", "turns_per_s", "memory", at_least=3), 4.0, True),
        (Aim("a figure of its own", "cpu", at_most=9.0), 10.0, False),
        (Aim("none of them", "errors", at_most=0), 0.0, True),
        (Aim("only told", "cpu", "memory"), 2.0, None),
    ):
        verdict = aim.judge(figures)
        assert verdict is not None
        assert (verdict.ratio, verdict.reached) == (ratio, reached), aim.what
    assert Aim("CPU", "cpu", "sqlite", at_most=1).judge({"delta": {"cpu": 10.0}}) is None


def test_a_failing_contender_leaves_the_others_running() -> None:
    shape = Shape("some", "some work", failing, ("none", "delta"), {"failing": "delta"}, {})
    result = shape.run()
    assert result.figures["none"]["work_cpu_ms"] >= 0
    assert result.errors.keys() == {"delta"}
    assert "ZeroDivisionError" in result.errors["delta"]
    with pytest.raises(ValueError, match=r"some \(delta\)"):
        results.keep(recorded(result))


def failing(contender: str, folder: Path, *, failing: str) -> Work:
    for _ in range(3):
        yield Step("work", lambda: 1 / (contender != failing))
    return {}


def test_a_record_names_the_machine_and_no_place_on_it(tmp_path: Path) -> None:
    result = SHAPES["short"].run(small=True, apart=False, only=["none", "delta"])
    path = results.keep(recorded(result), tmp_path)
    text = path.read_text(encoding="utf-8")
    assert results.read(path) == recorded(result)
    assert str(Path.home()) not in text
    assert str(ROOT) not in text
    assert set(json.loads(text)) == {"format", "date", "commit", "machine", "versions", "shapes"}
    assert {"python", "sqlite", "langgraph", "langmem-ext"} <= recorded(result).versions.keys()


def test_recorded_runs_can_be_read() -> None:
    for path in results.RESULTS.glob("*.json"):
        assert results.read(path).shapes


def test_what_a_script_for_postgresql_finds_is_kept_with_the_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results.tell(
        "postgres-peers",
        {"figures": {"ours": {"bytes": 3.0}}},
        0.5,
        as_json=True,
        record=True,
        folder=tmp_path,
    )
    [path] = tmp_path.iterdir()
    assert path.name.endswith("-postgres-peers.json")
    kept = json.loads(path.read_text())
    assert kept == json.loads(capsys.readouterr().out)
    assert (kept["figures"], kept["load"][0]) == ({"ours": {"bytes": 3.0}}, 0.5)
    assert kept["machine"]["cores"] == machine.machine().cores
