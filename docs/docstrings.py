"""Examples in docstrings, shown as code: the reference's reader takes `>>>` for a quotation within a quotation."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"(?:^(?:>>>|\.\.\.) .*\n?)+", re.MULTILINE)


class Examples(Extension):
    """Puts every run of `>>>` lines between fences."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """`obj` is a module, class, function or attribute as it was read from the source."""
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(
                lambda found: f"```pycon\n{found.group().rstrip()}\n```\n", obj.docstring.value
            )
