"""Pages from the package's templates: one environment, in which every text is escaped unless a template made it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


@lru_cache(maxsize=1)
def environment() -> Environment:
    """The environment of all templates, which are named by their path in the package, as in `report/base.html`."""
    made = Environment(
        loader=PackageLoader("fcdd", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return made


def asset(name: str) -> Markup:
    """A style sheet or script of the package, by its path in it; these are our own and stay as they are."""
    return Markup((resources.files("fcdd") / name).read_text(encoding="utf-8"))


def parts(
    template: str, *, styles: Sequence[str] = (), scripts: Sequence[str] = (), sources: str = "data:", **values: Any
) -> Iterator[str]:
    """The page of a template that extends `report/base.html`, piece by piece, so that long lists need no memory.

    `styles` are further style sheets and `scripts` make the only script of the page, all by their path in the package;
    `sources` says where images may come from, as in a Content-Security-Policy.
    """
    style = Markup("").join(asset(name) for name in ("report/style.css", *styles))
    code = Markup("").join(asset(name) for name in scripts)
    # Only this very script may run and nothing else may be loaded, even if a text slipped through unescaped.
    policy = f"default-src 'none'; img-src {sources}; style-src 'unsafe-inline'"
    if scripts:
        digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
        policy += f"; script-src 'sha256-{digest}'"
    return environment().get_template(template).generate(style=style, script=code, policy=policy, **values)


def page(template: str, **values: Any) -> str:
    """The whole page of a template; the arguments are those of `parts`."""
    return "".join(parts(template, **values))
