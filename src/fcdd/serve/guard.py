"""The door: who may come in, which headers every answer carries, and a log line and counters for each request."""

from __future__ import annotations

import hmac
import ipaddress
import logging
import secrets
import time
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fcdd.errors import FcddError
from fcdd.serve.limits import Refusal
from fcdd.serve.logs import log
from fcdd.serve.metrics import Metrics

PROBLEM = "application/problem+json"
NEEDS_TOKEN = ("/v1/", "/metrics")
SHORTEST_TOKEN = 16
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"})
SAFE = frozenset({"GET", "HEAD"})  # they change and compute nothing, and other sites cannot read the answers
# No inline script or style, nothing from other hosts; images of the session live in blobs.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(self), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}


def is_loopback(host: str) -> bool:
    """Whether a name or address can only mean this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


def is_address(text: str) -> bool:
    """Whether it is an IP address or a network of them."""
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True


def check_door(host: str, token: str | None) -> None:
    """FcddError where others could reach the server without a token, or with one that is easily guessed."""
    if token is None and not is_loopback(host):
        raise FcddError(f"--host {host}: others could reach the server; give a --token, or FCDD_TOKEN in its place")
    if token is not None and (len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable()):
        raise FcddError(f"--token: needs at least {SHORTEST_TOKEN} printable ASCII characters")


def is_foreign(headers: Headers) -> bool:
    """Whether a browser says that the page of another origin asks.

    Browsers tell it by Sec-Fetch-Site, older ones by an Origin that is not the Host asked for; pages can forge
    neither. Programs send none of them.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is not None and origin.partition("://")[2] != headers.get("host", "")


def problem(refused: Refusal) -> JSONResponse:
    """RFC 9457."""
    content = {"status": refused.status, "title": HTTPStatus(refused.status).phrase, "detail": refused.detail}
    return JSONResponse(content, refused.status, refused.headers, media_type=PROBLEM)


class Guard:
    """Outermost middleware: lets in, adds headers, counts, logs, and turns a defect of the program into a 500."""

    def __init__(self, app: ASGIApp, token: str | None, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics
        self._token = None if token is None else token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(send)
        scope.setdefault("state", {})["told"] = answer.told  # handlers add what the log should know
        try:
            self._admit(scope)
            await self._app(scope, receive, answer.send)
        except Refusal as refused:
            await problem(refused)(scope, receive, answer.send)
        except Exception as error:
            log("failure", level=logging.ERROR, failure=error, request=answer.identity)
            if not answer.status:
                await problem(Refusal(500, f"a defect of the server, logged as {answer.identity}"))(
                    scope, receive, answer.send
                )
        finally:
            self._tell(scope, answer)

    def _admit(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        if scope["method"] not in SAFE and is_foreign(headers):
            raise Refusal(403, "asked for by the page of another site; only this server's own page may")
        if self._token is None:
            # Without it a page of any site could point a name of its own at this machine and read the answers.
            if not is_loopback(_name(headers.get("host", ""))):
                raise Refusal(421, "without a token only localhost is answered; check the Host header")
        elif scope["path"].startswith(NEEDS_TOKEN):
            kind, _, given = headers.get("authorization", "").partition(" ")
            if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._token):
                raise Refusal(
                    401, "give the server's token: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"}
                )

    def _tell(self, scope: Scope, answer: _Answer) -> None:
        # The template, not the path: what clients make up must not become new time series.
        route = getattr(scope.get("route"), "path", None) or "other"
        method = scope["method"] if scope["method"] in METHODS else "other"
        seconds = time.monotonic() - answer.begun
        self._metrics.requests.labels(route, method, answer.status).inc()
        self._metrics.seconds.labels(route).observe(seconds)
        quiet = route in ("/healthz", "/readyz", "/metrics") and answer.status < 400
        log(
            "request",
            level=logging.DEBUG if quiet else logging.INFO,
            request=answer.identity,
            client=scope["client"][0] if scope.get("client") else None,
            method=method,
            path=scope["path"][:200],
            status=answer.status,
            ms=round(1000 * seconds, 1),
            **answer.told,
        )


def _name(host: str) -> str:
    """A Host header without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


class _Answer:
    """What goes back on one request."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = time.monotonic()
        self.identity = secrets.token_hex(8)
        self.status = 0
        self.told: dict[str, Any] = {}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers["X-Request-Id"] = self.identity
        await self._send(message)
