"""Fetch one file over HTTP and trust it only by its SHA-256."""

from __future__ import annotations

import hashlib
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import BinaryIO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from fcdd.errors import DataError
from fcdd.files import told, whole_file

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
    remedy = f"Fetch it by hand and save it as {path}."
    try:
        with whole_file(path) as file:
            found = _stream(url, file, path, timeout)
            if found != sha256.lower():
                raise DataError(f"{url}: SHA-256 is {found}, expected {sha256.lower()}; it was not kept. {remedy}")
    except HTTPError as error:
        raise DataError(f"{url}: the server answered {error.code} {error.reason}. {remedy}") from error
    except (URLError, TimeoutError, ConnectionError, HTTPException) as error:
        raise DataError(f"{url}: cannot be reached ({error}). Check the network, or: {remedy}") from error
    return path


def _stream(url: str, file: BinaryIO, path: Path, timeout: float) -> str:
    """Write what `url` answers to `file`, which will be `path`; its SHA-256."""
    sha, got = hashlib.sha256(), 0
    with urllib.request.urlopen(url, timeout=timeout) as answer:
        promised = answer.headers.get("Content-Length")
        while chunk := answer.read(_CHUNK):
            sha.update(chunk)
            with told(path):
                got += file.write(chunk)
    if promised is not None and got != int(promised):
        raise ConnectionError(f"ended after {got:,} of {int(promised):,} bytes")
    return sha.hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
