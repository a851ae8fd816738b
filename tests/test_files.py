"""Files appear whole or not at all, through links, on full disks, and only regular ones are read."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fcdd.errors import OutputError
from fcdd.files import open_regular, utf8, whole_file, write_atomically


@pytest.fixture
def small_files() -> Iterator[None]:
    """This process may write files of at most 64 kB, which is what a full disk looks like."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_new_file_is_there_alone(tmp_path: Path) -> None:
    write_atomically(tmp_path / "deep" / "a.json", [b"one ", b"two"])
    assert (tmp_path / "deep" / "a.json").read_bytes() == b"one two"
    assert os.listdir(tmp_path / "deep") == ["a.json"]


def test_an_error_on_the_way_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(TypeError), whole_file(path) as file:
        file.writelines([b"half of the new", None])  # type: ignore[list-item]
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.usefixtures("small_files")
@pytest.mark.parametrize("size", [65537, 500_000])
def test_a_full_disk_leaves_the_old_file_and_says_so(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(OutputError, match=r"a: cannot be written \(File too large\)"):
        write_atomically(path, bytes(size))
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_where_nothing_can_be_written_the_error_names_the_file() -> None:
    with pytest.raises(OutputError, match=r"/proc/nothing/here: cannot be written .* Check that the folder"):
        write_atomically(Path("/proc/nothing/here"), b"x")


def test_names_of_any_length_can_be_written(tmp_path: Path) -> None:
    longest = "ä" * 125 + ".json"  # 255 bytes
    write_atomically(tmp_path / longest, b"x")
    assert os.listdir(tmp_path) == [longest]
    with pytest.raises(OutputError, match="Choose a shorter name"):
        write_atomically(tmp_path / f"{longest}.", b"x")


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "v1").write_bytes(b"old")
    (tmp_path / "current").symlink_to("real/v1")
    write_atomically(tmp_path / "current", b"new")
    assert (tmp_path / "current").is_symlink()
    assert (tmp_path / "real" / "v1").read_bytes() == b"new"
    assert os.listdir(tmp_path / "real") == ["v1"]


def test_a_new_file_has_the_mode_that_the_user_asks_for(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "a", b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_pipes_devices_and_folders_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        with pytest.raises(OSError, match="a pipe or a device"):
            open_regular(tmp_path / name)
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to("file")
    with open_regular(tmp_path / "link") as file:
        assert file.read() == b"x"


def test_text_that_is_not_utf8_can_be_written() -> None:
    assert utf8("Prüfling caf\udce9") == "Prüfling caf\\udce9".encode()


def test_a_killed_writer_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    code = (
        "import os, sys, signal; from fcdd.files import whole_file\n"
        f"with whole_file({str(path)!r}) as file:\n"
        "    file.write(b'new' * 99999); file.flush(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == -9
    assert path.read_bytes() == b"old"
