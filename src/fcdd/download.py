"""Fetch one file over HTTP and trust it only by its SHA-256."""

from __future__ import annotations

import hashlib
import os
import threading
import urllib.request
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from fcdd.errors import DataError

_CHUNK = 1 << 20


def fetch(url: str, sha256: str, path: Path, timeout: float = 60.0) -> Path:
    """Stream `url` to `path`, which appears only when whole and of the given SHA-256; one that already is, is kept.

    Raises:
        DataError: no network, an HTTP error, a connection that ends early, or another checksum.
    """
    if path.is_file() and _digest(path) == sha256.lower():
        return path
    if urlsplit(url).scheme not in ("http", "https"):
        raise DataError(f"{url}: only http and https addresses can be fetched.")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    remedy = f"Fetch it by hand and save it as {path}."
    try:
        _stream(url, part, timeout)
        found = _digest(part)
        if found != sha256.lower():
            raise DataError(f"{url}: SHA-256 is {found}, expected {sha256.lower()}; it was not kept. {remedy}")
        os.replace(part, path)
    except HTTPError as error:
        raise DataError(f"{url}: the server answered {error.code} {error.reason}. {remedy}") from error
    except (URLError, TimeoutError, ConnectionError, HTTPException) as error:
        raise DataError(f"{url}: cannot be reached ({error}). Check the network, or: {remedy}") from error
    finally:
        part.unlink(missing_ok=True)
    return path


def _stream(url: str, part: Path, timeout: float) -> None:
    with urllib.request.urlopen(url, timeout=timeout) as answer, part.open("wb") as file:
        promised = answer.headers.get("Content-Length")
        got = 0
        while chunk := answer.read(_CHUNK):
            got += file.write(chunk)
    if promised is not None and got != int(promised):
        raise ConnectionError(f"ended after {got:,} of {int(promised):,} bytes")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
