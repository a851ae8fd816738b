"""Room in the server: taken, refused, given back."""

from __future__ import annotations

import pytest

from fcdd.errors import FcddError
from fcdd.serve.limits import Admission, Limits, Refusal


def test_room_is_taken_and_given_back() -> None:
    admission = Admission(Limits(queue=3, pictures=3, pixels=100, queue_pixels=100))
    with admission.entered() as one:
        one.add(pictures=1, pixels=60)
        with admission.entered() as two:
            assert admission.pictures == 3
            with pytest.raises(Refusal) as full, admission.entered():
                pass
            assert full.value.status == 503
            assert int(full.value.headers["Retry-After"]) >= 1
            with pytest.raises(Refusal):
                two.add(pixels=41)
            two.add(pixels=40)
            assert admission.pixels == 100
    assert (admission.pictures, admission.pixels, admission.refused) == (0, 0, 2)


def test_room_is_given_back_after_a_failure() -> None:
    admission = Admission(Limits())
    with pytest.raises(RuntimeError), admission.entered():
        raise RuntimeError
    assert admission.pictures == 0


@pytest.mark.parametrize(
    ("values", "name"),
    [({"queue": 0}, "queue"), ({"queue": 4, "pictures": 5}, "pictures"), ({"pixels": 10**9}, "pixels")],
)
def test_limits_that_contradict_each_other_are_refused(values: dict[str, int], name: str) -> None:
    with pytest.raises(FcddError, match=f"limit {name}"):
        Limits(**values)  # type: ignore[arg-type]
