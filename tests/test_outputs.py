"""Outputs: apart from the inputs, one writer at a time, and nothing is removed that fcdd did not make."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from fcdd import outputs
from fcdd.errors import OutputError
from fcdd.files import draft_prefix, write_atomically
from fcdd.outputs import claimed, foreign, mark, resumed_folder, together, whole_folder


def fill(output: Path, text: str, **options: object) -> None:
    with whole_folder(output, **options) as draft:  # type: ignore[arg-type]
        (draft / "results").mkdir()
        (draft / "results" / "a").write_text(text)


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_a_folder_appears_when_it_is_whole(tmp_path: Path) -> None:
    with whole_folder(tmp_path / "deep" / "out") as draft:
        (draft / "a").write_text("x")
        assert not (tmp_path / "deep" / "out").exists()
    assert names(tmp_path / "deep") == ["out"]
    assert names(tmp_path / "deep" / "out") == [outputs.MARKER, "a"]


def test_a_folder_of_fcdd_is_replaced_when_told_to(tmp_path: Path) -> None:
    fill(tmp_path / "out", "old")
    with pytest.raises(OutputError, match="pass --overwrite"):
        fill(tmp_path / "out", "new")
    fill(tmp_path / "out", "new", overwrite=True)
    assert (tmp_path / "out" / "results" / "a").read_text() == "new"
    assert names(tmp_path) == ["out"]


def test_an_error_leaves_the_old_folder(tmp_path: Path) -> None:
    fill(tmp_path / "out", "old")
    with pytest.raises(RuntimeError), whole_folder(tmp_path / "out", overwrite=True):
        raise RuntimeError
    assert (tmp_path / "out" / "results" / "a").read_text() == "old"
    assert names(tmp_path) == ["out"]


def test_what_fcdd_did_not_make_is_never_removed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.doc").touch()
    with pytest.raises(OutputError, match=r"thesis\.doc, which fcdd did not make"):
        fill(tmp_path / "mine", "new", overwrite=True)
    fill(tmp_path / "out", "old")
    (tmp_path / "out" / "notes.txt").touch()
    with pytest.raises(OutputError, match=r"notes\.txt, which fcdd did not make"):
        fill(tmp_path / "out", "new", overwrite=True)
    (tmp_path / "out" / "notes.txt").unlink()
    (tmp_path / "out" / outputs.MARKER).write_text("{")
    with pytest.raises(OutputError, match="results, which fcdd did not make"):
        fill(tmp_path / "out", "new", overwrite=True)
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="is a file"):
        fill(tmp_path / "file", "new", overwrite=True)


def test_entries_are_patterns(tmp_path: Path) -> None:
    mark(tmp_path, ["part-*"])
    for name in ("part-1", "other", ".fcdd-draft"):
        (tmp_path / name).touch()
    assert foreign(tmp_path) == ["other"]


def test_the_target_of_a_link_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    fill(tmp_path / "disk" / "v1", "old")
    (tmp_path / "out").symlink_to("disk/v1")
    fill(tmp_path / "out", "new", overwrite=True)
    assert (tmp_path / "out").is_symlink()
    assert (tmp_path / "disk" / "v1" / "results" / "a").read_text() == "new"


def test_inputs_and_outputs_are_kept_apart(tmp_path: Path) -> None:
    images, model = tmp_path / "parts" / "images", tmp_path / "parts" / "m.onnx"
    images.mkdir(parents=True)
    model.touch()
    (tmp_path / "link").symlink_to("parts")
    for output in (images, tmp_path / "parts", tmp_path / "link", tmp_path, images / "out", model):
        with pytest.raises(OutputError, match="Choose another -o"):
            fill(output, "x", inputs=[model, None, images], overwrite=True)
    fill(tmp_path / "parts" / "out", "x", inputs=[model, images])
    os.link(model, tmp_path / "same.onnx")
    for output in (model, tmp_path / "same.onnx", tmp_path / "link" / "m.onnx"):
        with (
            pytest.raises(OutputError, match="is read by this command"),
            claimed([output], inputs=[model, None], overwrite=True),
        ):
            pass


def test_files_that_cannot_be_written_are_refused_first(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.html")
    (tmp_path / "folder.html").mkdir()
    for name in ("pipe.html", "folder.html"):
        with pytest.raises(OutputError, match="no regular file"), claimed([tmp_path / name], overwrite=True):
            pass
    (tmp_path / "a.html").touch()
    with pytest.raises(OutputError, match="--overwrite"), claimed([tmp_path / "a.html"]):
        pass
    same = [tmp_path / "b.html", tmp_path / "." / "b.html"]
    with pytest.raises(OutputError, match="two outputs"), claimed(same):
        pass
    with pytest.raises(OutputError, match="cannot be written"), claimed([Path("/proc/x.html")]):
        pass


def hold(output: Path) -> subprocess.Popen[str]:
    """Another process that is writing `output`."""
    code = (
        "import sys, time; from pathlib import Path; from fcdd.outputs import whole_folder, claimed\n"
        f"with whole_folder(Path({str(output)!r}), overwrite=True) as draft:\n"
        "    (draft / 'half').touch(); print(draft.name, flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_the_second_writer_is_refused_and_a_dead_one_is_tidied_away(tmp_path: Path) -> None:
    fill(tmp_path / "out", "old")
    with hold(tmp_path / "out") as other:
        with pytest.raises(OutputError, match="another process is writing it"):
            fill(tmp_path / "out", "new", overwrite=True)
        with pytest.raises(OutputError, match="another process"), claimed([tmp_path / "out"]):
            pass
        fill(tmp_path / "else", "x")
        other.kill()
    assert (tmp_path / "out" / "results" / "a").read_text() == "old"
    assert len(names(tmp_path)) == 4, "the dead one's draft and lock are there"
    fill(tmp_path / "out", "new", overwrite=True)
    assert (tmp_path / "out" / "results" / "a").read_text() == "new"
    assert names(tmp_path) == ["else", "out"]


def test_without_the_kernels_exchange_the_old_folder_is_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "_exchange", lambda one, other: False)
    fill(tmp_path / "out", "old")
    fill(tmp_path / "out", "new", overwrite=True)
    assert (tmp_path / "out" / "results" / "a").read_text() == "new"
    # As a kill between the two renames leaves it.
    (tmp_path / "out").rename(tmp_path / f"{draft_prefix(tmp_path / 'out')}old-1")
    with pytest.raises(OutputError, match="pass --overwrite"):
        fill(tmp_path / "out", "newer")
    assert (tmp_path / "out" / "results" / "a").read_text() == "new"
    assert names(tmp_path) == ["out"]


def test_many_kills_leave_the_old_folder_or_the_new_one(tmp_path: Path) -> None:
    fill(tmp_path / "out", "0")
    code = (
        "import sys; from pathlib import Path; from fcdd.outputs import whole_folder\n"
        "for i in range(10**9):\n"
        f"    with whole_folder(Path({str(tmp_path / 'out')!r}), overwrite=True) as draft:\n"
        "        (draft / 'results').mkdir(); (draft / 'results' / 'a').write_text(str(i))\n"
        "    if not i: print('begun', flush=True)\n"
    )
    for number in range(12):
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.003 * number)
        process.kill()
        process.wait()
        assert (tmp_path / "out" / "results" / "a").read_text().isdigit()
        assert names(tmp_path / "out") == [outputs.MARKER, "results"]


def write_pair_badly(draft: Path) -> None:
    for name in ("m.safetensors", "m.html", "m.html/x"):
        write_atomically(draft / name, b"new")


def test_files_that_belong_together_appear_together(tmp_path: Path) -> None:
    pair = [tmp_path / "m.safetensors", tmp_path / "m.html"]
    with pytest.raises(OutputError, match=rf"^{tmp_path}/m.html/x: cannot be written"), together(pair) as draft:
        write_pair_badly(draft)
    assert names(tmp_path) == []
    with together(pair) as draft:
        for path in pair:
            (draft / path.name).write_text("new")
    assert names(tmp_path) == ["m.html", "m.safetensors"]


RESUMED = ["result.json", "part"]


def stop_within(out: Path, identity: str, overwrite: bool = False) -> None:
    """Begin a command of `identity` that makes a part and is then stopped by an error."""
    with suppress(RuntimeError), resumed_folder(out, RESUMED, identity, overwrite=overwrite) as work:
        (work / "part").open("x").write(identity)
        raise RuntimeError


def test_a_resumed_folder_keeps_what_is_there_unless_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "run"
    stop_within(out, "a")
    with resumed_folder(out, RESUMED, "a") as work:
        assert work == out
        assert (work / "part").exists()
    with resumed_folder(out, RESUMED, "a", overwrite=True) as work:
        assert not (work / "part").exists()
    (out / "mine").touch()
    for overwrite in (True, False):
        again = resumed_folder(out, RESUMED, "a", overwrite=overwrite)
        with pytest.raises(OutputError, match="mine, which fcdd did not make"), again:
            pass


def test_an_old_result_stays_until_the_new_one_is_whole_and_work_on_that_can_go_on(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with resumed_folder(out, RESUMED, "a") as work:
        (work / "result.json").write_text("old")

    stop_within(out, "b", overwrite=True)
    assert (out / "result.json").read_text() == "old"
    with resumed_folder(out, RESUMED, "c") as work:  # another command must not go on with it
        assert work == out
    with resumed_folder(out, RESUMED, "b") as work:
        assert (work / "part").read_text() == "b"
        assert (out / "result.json").read_text() == "old"
        (work / "result.json").write_text("new")
    assert (out / "result.json").read_text() == "new"
    assert names(tmp_path) == ["run"]


def test_overwriting_twice_starts_anew_and_leaves_nothing_beside(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with resumed_folder(out, RESUMED, "a") as work:
        (work / "result.json").write_text("old")
    for identity in ("a", "b"):
        stop_within(out, identity, overwrite=True)
    with resumed_folder(out, RESUMED, "b", overwrite=True) as work:
        assert not (work / "part").exists()
        (work / "result.json").write_text("new")
    assert names(tmp_path) == ["run"]
    assert names(out) == [outputs.MARKER, "result.json"]


def test_what_somebody_put_there_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with resumed_folder(out, RESUMED, "a") as work:
        (work / "result.json").write_text("old")
    with (
        pytest.raises(OutputError, match="mine, which fcdd did not make"),
        resumed_folder(out, RESUMED, "a", overwrite=True),
    ):
        (out / "mine").touch()
    assert names(out) == [outputs.MARKER, "mine", "result.json"]
