from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from fcdd.download import fetch
from fcdd.errors import DataError

BODY = bytes(range(256)) * 9000
SHA = hashlib.sha256(BODY).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Serves the body whole, cut short, slowly, or not at all."""

    def do_GET(self) -> None:
        if self.path == "/missing":
            self.send_error(404)
            return
        if self.path == "/slow":
            threading.Event().wait(3)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY[:5000] if self.path == "/cut" else BODY)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}"
    running.shutdown()
    running.server_close()
    thread.join()


def test_a_file_is_fetched_once(server: str, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.bin"
    assert fetch(f"{server}/file", SHA.upper(), path) == path
    assert path.read_bytes() == BODY
    fetch(f"{server}/missing", SHA, path)  # not asked for: what is there is right
    assert [one.name for one in path.parent.iterdir()] == ["file.bin"]


@pytest.mark.parametrize(
    ("address", "sha", "reason"),
    [
        ("/missing", SHA, "answered 404"),
        ("/file", "0" * 64, f"SHA-256 is {SHA}, expected 000"),
        ("/cut", SHA, r"ended after 5,000 of 2,304,000 bytes"),
        ("/slow", SHA, "cannot be reached"),
    ],
)
def test_failures_are_told_and_leave_nothing(server: str, tmp_path: Path, address: str, sha: str, reason: str) -> None:
    path = tmp_path / "file.bin"
    path.write_bytes(b"older")
    with pytest.raises(DataError, match=reason):
        fetch(server + address, sha, path, timeout=0.3)
    assert path.read_bytes() == b"older"
    assert len(list(tmp_path.iterdir())) == 1


def test_unreachable_and_foreign_addresses(server: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be reached"):
        fetch("http://127.0.0.1:9/file", SHA, tmp_path / "a", timeout=0.5)
    with pytest.raises(DataError, match="only http and https"):
        fetch(f"file://{tmp_path}/b", SHA, tmp_path / "a")
