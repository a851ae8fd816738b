"""The description inside a model file, checked key by key before anything is built from it.

A checksum tells that a file is as somebody wrote it, not that what was written makes sense. Keys that are not listed
here are let through: newer methods have more to say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from fcdd.errors import FcddError, ModelError
from fcdd.framing import FITS

LARGEST_SIDE = 65_536  # pixels of an input, and planes, directions and dimensions of a network
MISSING = object()


class Rule(NamedTuple):
    """What a value must be, in words and as a check."""

    text: str
    holds: Callable[[Any], bool]
    required: bool = True


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf


def _whole(low: int, high: int, required: bool = True) -> Rule:
    def holds(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high

    return Rule(f"a whole number from {low} to {high}", holds, required)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


OBJECT = Rule("an object", lambda value: isinstance(value, dict))
TEXT = Rule("a text", lambda value: isinstance(value, str))
TEXTS = Rule("a list of texts", _texts)
FINITE = Rule("a finite number", _number)
POSITIVE = Rule("a finite number above 0", lambda value: _number(value) and value > 0)
NOT_NEGATIVE = Rule("a finite number of at least 0", lambda value: _number(value) and value >= 0)
SHARE = Rule("a number above 0 and at most 1", lambda value: _number(value) and 0 < value <= 1, required=False)
LEVEL = Rule("null or a number between 0 and 1", lambda v: v is None or (_number(v) and 0 < v < 1), required=False)
COUNT = _whole(0, 2**53)
SIZE = _whole(0, LARGEST_SIDE, required=False)
SHAPE = Rule(
    f"two whole numbers from 1 to {LARGEST_SIDE}",
    lambda value: isinstance(value, list) and len(value) == 2 and all(_whole(1, LARGEST_SIDE).holds(v) for v in value),
)


def _or_null(rule: Rule, required: bool = False) -> Rule:
    """The rule, or null: what the settings leave to the method, and what an uncalibrated model does not have."""
    return Rule(f"null or {rule.text}", lambda value: value is None or rule.holds(value), required)


DETECTOR: dict[str, Rule] = {
    "settings": OBJECT,
    "settings.method": TEXT._replace(required=False),
    "settings.architecture": _or_null(OBJECT),
    "settings.architecture.trunk": TEXT._replace(required=False),
    "settings.architecture.planes": SIZE,
    "settings.architecture.directions": SIZE,
    "settings.architecture.dimensions": SIZE,
    "settings.smallest": SIZE,
    "settings.largest": _or_null(SIZE),
    "settings.vectors": COUNT._replace(required=False),
    "settings.holdout": SHARE,
    "settings.top": _or_null(SHARE),
    "settings.sigma": _or_null(POSITIVE),
    "settings.max_false_rejects": LEVEL,
    "settings.review": LEVEL,
    "architecture": _or_null(OBJECT),  # among the settings, in files of schema 1
    "architecture.kind": TEXT._replace(required=False),
    "architecture.planes": SIZE,
    "architecture.directions": SIZE,
    "architecture.dimensions": SIZE,
    "top": SHARE,
    "seed": _whole(-(2**63), 2**63 - 1),
    "grid": OBJECT,
    "grid.shape": SHAPE,
    "grid.stride": _whole(1, LARGEST_SIDE),
    "grid.start": FINITE,
    "grid.sigma": POSITIVE,
    "calibration": _or_null(OBJECT, required=True),
    "versions": _or_null(OBJECT),
    "versions.others": Rule("a list of objects", lambda v: isinstance(v, list) and all(map(OBJECT.holds, v)), False),
    "pixel_floor": NOT_NEGATIVE._replace(required=False),  # within the calibration, from schema 3 on
    "looks": _or_null(OBJECT),
    "looks.traits": TEXTS._replace(required=False),
    "looks.values": Rule("a list", lambda value: isinstance(value, list), required=False),
    "framing": Rule(f"null or one of {', '.join(FITS)}", lambda value: value is None or value in FITS, required=False),
    "card": OBJECT,
    "card.aspect": POSITIVE._replace(required=False),
    "card.good": COUNT,
    "card.calibration": COUNT,
    "card.defects": COUNT,
    "card.fingerprint": TEXT,
    "card.trained": TEXTS,
    "card.versions": Rule("texts by name", lambda value: isinstance(value, dict) and _texts(list(value.values()))),
}
RUNTIME: dict[str, Rule] = {
    **DETECTOR,
    "inside": Rule("rows of 0 and 1", lambda value: _texts(value) and not set("".join(value)) - set("01")),
    "precision": TEXT,
    "parity": OBJECT,
}


@contextmanager
def described(path: Path | str, info: Mapping[str, Any], rules: Mapping[str, Rule]) -> Iterator[None]:
    """Build what the `info` of the file `path` describes, after checking it by `rules`.

    Raises:
        ModelError: a value is missing or not what it must be, or nothing can be built from them together.
    """
    for key, rule in rules.items():
        value = _at(info, key)
        if value is MISSING and rule.required:
            raise ModelError(f"{path}: its description has no {key}; it was made by something else than fcdd")
        if value is not MISSING and not rule.holds(value):
            raise ModelError(f"{path}: {key} must be {rule.text}, got {value!r:.60}; it cannot be used")
    try:
        yield
    except ModelError:
        raise
    except (FcddError, ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise ModelError(f"{path}: its description makes no sense ({first:.200}); it cannot be used") from error


def _at(info: Mapping[str, Any], key: str) -> Any:
    """The value under a dotted key; MISSING also where what should hold it is no object, which its own rule says."""
    value: Any = info
    for name in key.split("."):
        value = value.get(name, MISSING) if isinstance(value, dict) else MISSING
    return value
