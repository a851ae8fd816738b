"""A run's folder: partitions appear whole and once, and a restart must bring the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyarrow import parquet

from fcdd import outputs
from fcdd.batch import on_ray
from fcdd.batch.parts import TRIES, Run, opened, partition_size
from fcdd.errors import DataError, OutputError

from .brightness import write_images, write_model


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_model(tmp_path / "model.onnx")
    write_images(tmp_path / "in", 70)
    return tmp_path


def begin(place: Path, **changes: object) -> Run:
    asked = {"model": place / "model.onnx", "inputs": place / "in", "output": place / "out"}
    with opened(**{**asked, "format": "jsonl", "overwrite": False, **changes}) as run:  # type: ignore[arg-type]
        return run


def row(item: int, score: float) -> dict[str, object]:
    return {"item": item, "file": f"{item}.png", "score": score, "p_value": 0.5, "verdict": "OK", "regions": []}


def test_small_runs_have_small_partitions_and_large_ones_few() -> None:
    assert [partition_size(n) for n in (1, 2_000, 100_000, 10**6, 10**8)] == [32, 32, 100, 1000, 1000]


def test_a_partition_written_twice_is_there_once(place: Path) -> None:
    run = begin(place)
    first, *others = run.left()
    run.begin(first)
    run.write(first, [row(0, 1.0)], [{"item": 1, "file": "1.png", "reason": "cut"}])
    run.write(first, [row(0, 2.0), row(1, 2.0)], [])
    assert (run.part(first) / "results.jsonl").read_text().count("\n") == 1
    assert json.loads((run.part(first) / "errors.jsonl").read_text())["reason"] == "cut"
    assert run.left() == others
    assert begin(place).left() == others
    assert sorted(path.name for path in run.folder.iterdir()) == [
        ".fcdd.json",
        "inputs.jsonl",
        "model.onnx",
        "part-000000",
        "run.json",
    ]
    told = run.summary()
    assert (told["scored"], told["errors"], told["worst"][0]["score"]) == (1, 1, 1.0)


def test_parquet_holds_the_same_with_regions_and_odd_names(place: Path) -> None:
    run = begin(place, format="parquet")
    region = {"x": 1, "y": 2, "width": 3, "height": 4, "area": 5, "peak": 0.5, "share": 0.25}
    run.write(run.left()[0], [{**row(0, 1.5), "regions": [region]}, {**row(1, 0.5), "file": "caf\udce9.png"}], [])
    read = parquet.read_table(run.folder / "part-000000" / "results.parquet").to_pylist()
    assert read == [{**row(0, 1.5), "regions": [region]}, {**row(1, 0.5), "file": "caf\\udce9.png"}]
    assert not (run.folder / "part-000000" / "errors.parquet").exists()


def test_another_model_input_or_format_is_refused_unless_overwritten(place: Path) -> None:
    run = begin(place)
    run.write(run.left()[0], [row(0, 1.0)], [])
    with pytest.raises(DataError, match="another format"):
        begin(place, format="parquet")
    write_model(place / "other.onnx", reject_above=0.7)
    with pytest.raises(DataError, match=r"another model\."):
        begin(place, model=place / "other.onnx")
    (place / "in" / "new.png").write_bytes(b"x")
    with pytest.raises(DataError, match=r"another inputs, items.*--overwrite"):
        begin(place)
    assert len(begin(place, overwrite=True).left()) == 3


def test_folders_that_must_not_be_written(place: Path) -> None:
    (place / "mine").mkdir()
    (place / "mine" / "thesis.doc").touch()
    with pytest.raises(DataError, match="no run of this kind"):
        begin(place, output=place / "mine")
    with pytest.raises(OutputError, match=r"thesis\.doc, which fcdd did not make"):
        begin(place, output=place / "mine", overwrite=True)
    for output in (place, place / "in", place / "in" / "out"):
        with pytest.raises(OutputError, match="Choose another -o"):
            begin(place, output=output, overwrite=True)
    (place / "empty").mkdir()
    with pytest.raises(DataError, match="no images in it"):
        begin(place, inputs=place / "empty")
    with pytest.raises(DataError, match="no such folder or manifest"):
        begin(place, inputs=place / "nowhere")
    with outputs.claimed_folder(place / "out"), pytest.raises(OutputError, match="another process"):
        begin(place)


def test_a_partition_that_kills_every_worker_is_given_up(place: Path) -> None:
    run = begin(place)
    span = run.left()[1]
    for _ in range(TRIES):
        run.begin(span)
    with pytest.raises(
        DataError, match=r"part-000001: 5 workers died of it. Look at lines 33 to 64 of .*inputs\.jsonl"
    ):
        run.begin(span)
    told = on_ray.Worker(run, 1)({name: [value] for name, value in span._asdict().items()})  # type: ignore[dict-item]
    assert "5 workers died" in told["failure"][0]
    begin(place)
    run.begin(span)  # the next start counts anew


def test_a_worker_sets_unreadable_images_apart_with_the_reason(place: Path) -> None:
    good = place / "in" / "00" / "00007.png"
    (place / "cut.png").write_bytes(good.read_bytes()[:60])
    (place / "list.csv").write_text(f"label,path\na,{good}\nb,missing.png\nc,cut.png\nd\ne,in/00/00064.png\na,{good}\n")
    run = begin(place, inputs=place / "list.csv")
    rows, errors = on_ray.Worker(run, 1).score(run.left()[0])
    assert [(r["item"], r["file"], r["verdict"]) for r in rows] == [
        (0, str(good), "OK"),
        (4, "in/00/00064.png", "OK"),
        (5, str(good), "OK"),
    ]
    assert [r["score"] for r in rows] == pytest.approx([7 / 255, 64 / 255, 7 / 255])
    assert [(e["item"], e["file"]) for e in errors] == [(1, "missing.png"), (2, "cut.png"), (3, "d")]
    for error, reason in zip(errors, ["no such file", "damaged or truncated", "no path in this line"], strict=True):
        assert reason in error["reason"]
