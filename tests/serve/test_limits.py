"""Room in the server: taken, refused, given back."""

from __future__ import annotations

import math
from functools import partial

import pytest

from fcdd.errors import FcddError
from fcdd.serve.limits import PATIENCE, Admission, Limits, Refusal


def test_room_is_taken_and_given_back() -> None:
    admission = Admission(Limits(queue=3, images=3, body=100, received=100))
    with admission.entered() as one:
        one.add(images=1, received=60)
        with admission.entered() as two:
            assert admission.images == 3
            with pytest.raises(Refusal) as full, admission.entered():
                pass
            assert full.value.status == 503
            assert int(full.value.headers["Retry-After"]) >= 1
            with pytest.raises(Refusal):
                two.add(received=41)
            two.add(received=40)
            assert admission.received == 100
    assert (admission.images, admission.received) == (0, 0)


def test_the_slowest_upload_gives_way() -> None:
    admission = Admission(Limits(queue=3, images=3))
    ended = []
    with admission.entered() as quick, admission.entered() as slow, admission.entered() as computing:
        quick.add(received=1000)
        slow.add(received=10)
        for entry in (quick, slow):
            entry.begun -= 2 * PATIENCE
            entry.end_upload = partial(ended.append, entry)
        computing.begun -= 2 * PATIENCE  # it has arrived: what was taken is answered
        with admission.entered():
            assert ended == [slow]
            assert slow.displaced
            assert admission.images == 3
    assert admission.images == 0


def test_room_is_given_back_after_a_failure() -> None:
    admission = Admission(Limits())
    with pytest.raises(RuntimeError), admission.entered():
        raise RuntimeError
    assert admission.images == 0


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"queue": 0}, "queue"),
        ({"queue": 4, "images": 5}, "images"),
        ({"body": 10**9}, "body"),
        ({"seconds": math.nan}, "seconds"),
        ({"seconds": math.inf}, "seconds"),
        ({"upload_seconds": 1e9}, "upload_seconds"),
    ],
)
def test_limits_that_contradict_each_other_are_refused(values: dict[str, float], name: str) -> None:
    with pytest.raises(FcddError, match=f"limit {name}"):
        Limits(**values)  # type: ignore[arg-type]
