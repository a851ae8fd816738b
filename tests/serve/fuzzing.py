"""Requests that nobody would send on purpose, the same from the same seed. The load benchmark sends more of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi import checks

from .running import encoded

SECONDS = 10.0  # for one answer
KINDS = ("PNG", "JPEG", "BMP", "TIFF", "WEBP", "GIF", "PPM")
# Bytes that the schema allows need not be a image, so "valid data is accepted" is not among them.
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
    checks.unsupported_method,
]


def from_schema(address: str, model: str, examples: int, fresh: bool = False) -> dict[str, Counter[int]]:
    """Statuses by operation of requests made from the server's own schema, each also on a model that exists.

    The requests are the same every time unless they are to be `fresh`. Fails where an answer is a 500, comes too late,
    or is not what the schema says.
    """
    schema = schemathesis.openapi.from_url(address + "/openapi.json")
    statuses = {}
    for found in schema.get_all_operations():
        assert isinstance(found, Ok), found
        operation = found.ok()
        statuses[operation.label] = _exercise(operation.as_strategy(), model, examples, fresh)
    return statuses


def _exercise(strategy: SearchStrategy[Any], model: str, examples: int, fresh: bool) -> Counter[int]:
    statuses: Counter[int] = Counter()

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=not fresh,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def send(case: Case[Any]) -> None:
        statuses[case.call_and_validate(checks=CHECKS, timeout=SECONDS).status_code] += 1
        if "name" in case.path_parameters:
            case.path_parameters["name"] = model
            statuses[case.call_and_validate(checks=CHECKS, timeout=SECONDS).status_code] += 1

    send()
    return statuses


def damaged(rounds: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """(what it is, bytes): cut off, bytes changed in the header or anywhere, pieces repeated, headers exchanged."""
    generator = np.random.default_rng(seed)
    whole = {kind: encoded(generator.integers(0, 256, (48, 48, 3), np.uint8), kind) for kind in KINDS}
    for kind, content in whole.items():
        yield f"{kind} whole", content
        for _ in range(rounds):
            yield f"{kind} cut", content[: generator.integers(1, len(content))]
            for name, reach in (("header", min(64, len(content))), ("bytes", len(content))):
                changed = bytearray(content)
                for at in generator.integers(0, reach, generator.integers(1, 6)):
                    changed[at] = generator.integers(0, 256)
                yield f"{kind} {name}", bytes(changed)
            start, end = sorted(generator.integers(0, len(content), 2))
            yield f"{kind} repeated", content[:end] + content[start:]
            other = whole[KINDS[generator.integers(len(KINDS))]]
            yield f"{kind} exchanged", content[:16] + other[16:]


def from_damage(address: str, model: str, rounds: int, seed: int = 0) -> Counter[int]:
    """Statuses of damaged images; fails where one is neither judged nor refused for what it is."""
    statuses: Counter[int] = Counter()
    with requests.Session() as session:
        for name, content in damaged(rounds, seed):
            path = f"{address}/v1/models/{model}/predict?heatmap=png"
            answer = session.post(path, data=content, timeout=SECONDS)
            assert answer.status_code in (200, 413, 415, 422), f"{name}: {answer.status_code} {answer.text}"
            assert answer.status_code == 200 or not name.endswith("whole"), f"{name}: {answer.text}"
            statuses[answer.status_code] += 1
    return statuses
