"""The web page and the page of the API: fixed files of the package, read once. No path of a request names a file."""

from __future__ import annotations

from importlib import resources

from fastapi import APIRouter, Response

KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
SCRIPTS = ("app", "api", "elements", "history", "intake", "threshold", "viewer", "docs")
FILES = {
    "/": "index.html",
    "/docs": "docs.html",
    **{f"/page/{name}.js": f"{name}.js" for name in SCRIPTS},
    "/page/style.css": "style.css",
    "/page/icon.svg": "icon.svg",
}
router = APIRouter(include_in_schema=False)


def _serve(path: str, name: str) -> None:
    content = resources.files("fcdd.serve").joinpath("page", name).read_bytes()
    kind = KINDS[name.rpartition(".")[2]]

    @router.api_route(path, methods=["GET", "HEAD"])
    async def page() -> Response:
        return Response(content, media_type=kind, headers={"Cache-Control": "no-cache"})


for _path, _name in FILES.items():
    _serve(_path, _name)
