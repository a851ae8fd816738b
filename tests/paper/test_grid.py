"""The ledger: what determines a result, what is done once, what a failure leaves, what others see meanwhile."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from fcdd.data import DATASETS
from fcdd.errors import DataError
from fcdd.paper import grid
from fcdd.paper.grid import Ledger, Task
from fcdd.paper.run import Job
from fcdd.training import recipe

from . import layouts


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return layouts.fashion_mnist(tmp_path_factory.mktemp("data"))


def task_of(root: Path, seed: int = 0, normal: str = "trouser", **overrides: object) -> Task:
    exposure = f"folder:{root / 'aux'}"
    chosen = recipe.load("fmnist", {"epochs": 1, "batch": 16, "exposure": exposure, **overrides})
    return Task(Job(chosen, normal, root, seed, None), "fcdd")


def test_the_key_changes_with_all_that_determines_a_result(root: Path, tmp_path: Path) -> None:
    weights = tmp_path / "w.safetensors"
    weights.write_bytes(b"one")
    job = replace(task_of(root, pretrained=True).job, weights=weights)
    others = [
        replace(job, seed=1),
        replace(job, normal="coat"),
        replace(job, recipe=replace(job.recipe, lr=0.02)),
        replace(job, recipe=replace(job.recipe, method="hsc")),
        replace(job, authors_protocol=True),
        replace(job, random_start=True),
    ]
    other_weights = tmp_path / "v.safetensors"
    other_weights.write_bytes(b"two")
    others.append(replace(job, weights=other_weights))
    keys = [grid.key(one) for one in (job, *others)]
    assert len(set(keys)) == len(keys)


def test_the_key_follows_the_data_and_not_its_place(tmp_path: Path) -> None:
    first = layouts.cifar(tmp_path / "first")
    second = Path(shutil.copytree(first, tmp_path / "second"))
    job = Job(recipe.load("cifar10"), "airplane", first, 0, None)
    assert grid.key(job) == grid.key(replace(job, data=second))
    third = Path(shutil.copytree(first, tmp_path / "third"))
    shutil.copy(
        third / "cifar-10-batches-bin" / "data_batch_1.bin", third / "cifar-10-batches-bin" / "data_batch_2.bin"
    )
    assert grid.key(job) != grid.key(replace(job, data=third))


def test_the_keys_of_results_that_exist_stay_what_they_are(tmp_path: Path) -> None:
    """Were one of these to change, results on users' disks would be run again, or others taken for them."""
    sizes = {
        "FashionMNIST/raw/train-images-idx3-ubyte": 40,
        "FashionMNIST/raw/train-labels-idx1-ubyte.gz": 12,
        "FashionMNIST/raw/t10k-images-idx3-ubyte": 30,
        "FashionMNIST/raw/t10k-labels-idx1-ubyte.gz": 9,
        "cifar-10-batches-py/data_batch_1": 100,
        "cifar-10-batches-py/test_batch": 50,
        "cifar-100-binary/test.bin": 70,
        "EMNIST/raw/emnist-letters-train-images-idx3-ubyte.gz": 21,
        "mvtec/bottle/train/good/000.png": 5,
        "mvtec/bottle/test/broken/000.png": 6,
        "mvtec/bottle/ground_truth/broken/000_mask.png": 7,
    }
    for name, size in sizes.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(bytes(size))
    jobs = {
        "fc6de2514c97": Job(recipe.load("fmnist"), "trouser", tmp_path, 0, None),
        "626f821d0f91": Job(recipe.load("fmnist", {"exposure": "emnist"}).shortened(4), "coat", tmp_path, 1, None),
        "60cd61216641": Job(recipe.load("cifar10", {"method": "hsc"}), "airplane", tmp_path, 3, None),
        "7b7a05acf946": Job(recipe.load("mvtec", {"augment": "mvtec", "batch": 16}), "bottle", tmp_path, 0, None, True),
    }
    assert [grid.key(job) for job in jobs.values()] == list(jobs)


def test_results_of_another_reading_of_the_same_files_do_not_count(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = task_of(root).job
    before = grid.key(job)
    monkeypatch.setitem(DATASETS._known, "fmnist", replace(DATASETS["fmnist"], revision=2))
    assert grid.key(job) != before


def test_missing_weights_are_named(root: Path) -> None:
    job = replace(task_of(root, pretrained=True).job, weights=Path("nowhere.pth"))
    with pytest.raises(DataError, match=r"nowhere\.pth"):
        grid.key(job)


def test_a_task_is_run_once(root: Path, tmp_path: Path) -> None:
    ledger, task = Ledger(tmp_path), task_of(root)
    assert ledger.state(task) == "left"
    assert ledger.execute(task) == "done"
    written = (ledger.folder(task) / "result.json").stat().st_mtime_ns
    assert ledger.execute(task) == "done"
    assert (ledger.folder(task) / "result.json").stat().st_mtime_ns == written
    assert len((ledger.folder(task) / "sessions.jsonl").read_text().splitlines()) == 1
    result = ledger.result(task)
    assert result is not None
    assert result["job"]["normal"] == "trouser"


def test_a_failure_is_kept_with_its_traceback_until_it_is_forgiven(root: Path, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    task = task_of(root, exposure="emnist")
    assert ledger.execute(task) == "failed"
    failure = ledger.failure(task)
    assert failure is not None
    assert failure["error"].startswith("DataError: emnist-letters")
    assert "open_corpus" in failure["traceback"]
    assert grid.status(ledger, [task]).failures == [failure]
    ledger.forgive([task])
    assert ledger.state(task) == "left"


@contextmanager
def held(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock on `path`."""
    path.parent.mkdir(parents=True)
    code = f"import filelock, time; lock = filelock.FileLock({str(path)!r}); lock.acquire(); print('held', flush=True)"
    code += "; time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_what_another_process_runs_is_left_alone_until_that_process_dies(root: Path, tmp_path: Path) -> None:
    ledger, task = Ledger(tmp_path), task_of(root)
    with held(ledger.folder(task) / "claim") as other:
        assert ledger.state(task) == "running"
        assert ledger.execute(task) == "running"
        assert ledger.result(task) is None
        other.kill()
        other.wait()
        assert ledger.state(task) == "left"
    assert ledger.execute(task) == "done"


def test_status_counts_and_estimates(root: Path, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    tasks = [task_of(root, seed) for seed in range(3)] + [task_of(root, exposure="emnist")]
    assert grid.status(ledger, tasks) == grid.Status(0, 0, 0, 4, None, [])
    for task in (tasks[0], tasks[3]):
        ledger.execute(task)
    folder = ledger.folder(tasks[0])
    started = (folder / "result.json").stat().st_mtime - 10
    (folder / "sessions.jsonl").write_text(json.dumps({"started": started}) + "\n")
    told = grid.status(ledger, tasks, workers=1)
    assert (told.done, told.failed, told.running, told.left) == (1, 1, 0, 2)
    assert told.seconds_left == pytest.approx(20, abs=0.1)
    assert grid.status(ledger, tasks, workers=2).seconds_left == pytest.approx(10, abs=0.1)
