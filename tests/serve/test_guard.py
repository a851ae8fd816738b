"""Who is let in, and with which headers everyone is answered."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import requests

from fcdd.detector.result import Result
from fcdd.detector.runtime import Runtime
from fcdd.errors import FcddError
from fcdd.serve.guard import check_door, is_loopback
from fcdd.serve.logs import written_to

from .running import running

TOKEN = "correct-horse-battery"


@pytest.fixture(scope="module")
def guarded(plate: Runtime) -> Iterator[str]:
    with running({"plate": plate}, token=TOKEN) as address:
        yield address


@pytest.mark.parametrize(
    ("host", "is_it"),
    [
        ("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("[::1]", True), ("localhost", True),
        ("0.0.0.0", False), ("::", False), ("192.168.1.2", False), ("localhost.example.org", False), ("", False),
    ],
)  # fmt: skip
def test_loopback(host: str, is_it: bool) -> None:
    assert is_loopback(host) == is_it


def test_without_a_token_only_loopback_is_bound() -> None:
    check_door("127.0.0.1", None)
    check_door("0.0.0.0", TOKEN)
    with pytest.raises(FcddError, match="--token"):
        check_door("0.0.0.0", None)
    for weak in ("", "short", "fifteen-letters", "zwölf-jahre-alter-whisky", "line\nbreaks-in-the-token"):
        with pytest.raises(FcddError, match="16 printable ASCII"):
            check_door("127.0.0.1", weak)


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/plate", "/v1/made-up", "/metrics"])
def test_the_token_is_asked_for(guarded: str, path: str) -> None:
    for given in (None, "Bearer", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer \xff"):
        headers = {} if given is None else {"Authorization": given.encode("latin-1")}
        answer = requests.get(guarded + path, headers=headers, timeout=20)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert TOKEN not in answer.text
    known = requests.get(guarded + path, headers={"Authorization": f"bearer {TOKEN}"}, timeout=20)
    assert known.status_code == (404 if "made-up" in path else 200)


def test_probes_and_the_page_need_no_token(guarded: str) -> None:
    for path in ("/healthz", "/readyz", "/", "/docs", "/openapi.json", "/page/app.js"):
        assert requests.get(guarded + path, timeout=20).status_code == 200
    schema = requests.get(guarded + "/openapi.json", timeout=20).json()
    assert schema["paths"]["/v1/models"]["get"]["security"] == [{"token": []}]
    assert "security" not in schema["paths"]["/healthz"]["get"]


def test_without_a_token_other_names_are_not_answered(served: str, guarded: str) -> None:
    for host, status in (("evil.example", 421), ("evil.example:80", 421), ("[", 421), ("localhost:1", 200)):
        assert requests.get(served + "/v1/models", headers={"Host": host}, timeout=20).status_code == status
    named = {"Host": "line-3.example", "Authorization": f"Bearer {TOKEN}"}
    assert requests.get(guarded + "/v1/models", headers=named, timeout=20).status_code == 200


@pytest.mark.parametrize("path", ["/", "/v1/models", "/page/style.css", "/no/such/page", "/metrics"])
def test_every_answer_carries_the_headers(served: str, path: str) -> None:
    headers = requests.get(served + path, timeout=20).headers
    policy = dict(part.strip().partition(" ")[::2] for part in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert "server" not in headers
    assert len(headers["X-Request-Id"]) == 16


class Broken(Runtime):
    """A defect of the program."""

    def predict_arrays(self, arrays: Sequence[np.ndarray]) -> list[Result]:
        raise ZeroDivisionError("secret detail")


def test_a_defect_of_the_program_is_logged_and_told_without_its_detail(plate_model: Path, defect: Path) -> None:
    lines = io.StringIO()
    with written_to(lines, "info"), running({"plate": Broken(plate_model, threads=1)}) as address:
        answer = requests.post(address + "/v1/models/plate/predict", data=defect.read_bytes(), timeout=20)
        assert requests.get(address + "/readyz", timeout=20).status_code == 200
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    failure = next(line for line in map(json.loads, lines.getvalue().splitlines()) if line["event"] == "failure")
    assert failure["request"] == answer.headers["X-Request-Id"]
    assert failure["request"] in answer.json()["detail"]
    assert "ZeroDivisionError: secret detail" in failure["error"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 415),
        ({"Sec-Fetch-Site": "same-origin"}, 415),
        ({"Sec-Fetch-Site": "none"}, 415),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "OWN"}, 415),
        # Behind a proxy that changes the Host, the browser's own word counts.
        ({"Origin": "https://line-3.example", "Sec-Fetch-Site": "same-origin"}, 415),
    ],
)
def test_pages_of_other_sites_are_refused(served: str, headers: dict[str, str], status: int) -> None:
    sent = {name: value.replace("OWN", served) for name, value in headers.items()}
    answer = requests.post(served + "/v1/models/plate/predict", data=b"no image", headers=sent, timeout=20)
    assert answer.status_code == status
    # A link from another site still opens the page.
    assert requests.get(served + "/", headers=sent, timeout=20).status_code == 200


def test_forwarded_addresses_are_believed_of_known_proxies_only(plate: Runtime) -> None:
    for proxies, client in (((), "127.0.0.1"), (("10.0.0.9",), "127.0.0.1"), (("127.0.0.1",), "203.0.113.7")):
        lines = io.StringIO()
        with written_to(lines, "info"), running({"plate": plate}, proxies=proxies) as address:
            requests.get(address + "/v1/models", headers={"X-Forwarded-For": "203.0.113.7"}, timeout=20)
        (told,) = (line for line in map(json.loads, lines.getvalue().splitlines()) if line["event"] == "request")
        assert told["client"] == client
