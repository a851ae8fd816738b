"""Requests made up from the server's own schema, and damaged images: no 500, no hang, the server goes on."""

from __future__ import annotations

import requests

from . import fuzzing


def test_requests_made_from_the_schema(served: str) -> None:
    statuses = fuzzing.from_schema(served, "plate", examples=12)
    assert set(statuses) == {
        "GET /v1/models",
        "GET /v1/models/{name}",
        "POST /v1/models/{name}/predict",
        "POST /v1/models/{name}/predict/batch",
        "GET /healthz",
        "GET /readyz",
        "GET /metrics",
    }
    assert statuses["GET /v1/models/{name}"][200] > 0
    # Names made up by the schema are unknown; only a model that exists gets as far as reading what was sent.
    predicted = set(statuses["POST /v1/models/{name}/predict"])
    assert 404 in predicted
    assert predicted & {200, 415}


def test_damaged_images_get_an_answer_that_fits(served: str) -> None:
    statuses = fuzzing.from_damage(served, "plate", rounds=6)
    assert statuses[200] >= len(fuzzing.KINDS)
    assert statuses[415] > 0
    assert statuses[422] > 0
    assert requests.get(served + "/readyz", timeout=20).status_code == 200
