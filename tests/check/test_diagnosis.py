"""The diagnosis as text and as a dictionary."""

from __future__ import annotations

import json

from fcdd.check import Diagnosis, Finding
from fcdd.check.diagnosis import grouped, promise
from fcdd.detector.settings import Settings


def diagnosis(*findings: Finding, good: int = 50) -> Diagnosis:
    counts = {"train good": good, "test good": 3, "defects": 0, "masks": 0}
    return Diagnosis("parts", findings, counts, {"64 × 64": 40, "80 × 80": 10, "32 × 32": 2, "8 × 8": 1})


def test_without_findings_it_says_what_there_is() -> None:
    assert diagnosis().text().splitlines() == [
        "parts: 50 train good, 3 test good.",
        "Sizes: 64 × 64 (40), 80 × 80 (10), 32 × 32 (2) and 1 other sizes.",
        promise(50),
        "",
        "No errors: training can start.",
    ]
    assert promise(49) not in diagnosis(good=49).text()  # said by a finding then
    assert "1 / 101 = 1.0 %" in promise(400)


def test_the_promise_counts_the_images_that_training_holds_out() -> None:
    for good in (50, 51, 53, 400):
        held = Settings().held(good)
        assert f"{held} (25 %) are held out" in promise(good)
        assert f"1 / {held + 1} =" in promise(good)
    assert Settings().held(50) == 13  # rounded up


def test_only_errors_stand_in_the_way() -> None:
    warning, error = (Finding(severity, "code", (), "Message.", "Advice.") for severity in ("warning", "error"))
    assert diagnosis(warning).ok
    assert not diagnosis(error, warning).ok
    text = diagnosis(error, warning, warning).text()
    assert text.index("1 error:") < text.index("2 warnings:")
    assert text.endswith("Remedy the errors first.")


def test_text_shortens_long_lists_and_the_dictionary_keeps_them() -> None:
    empty = Finding("error", "unreadable", tuple(f"{n:02}.png" for n in range(25)), "Empty.", "Export it again.")
    same = [Finding("warning", "duplicate", (f"{n}.png",), "The same.", "Keep one.") for n in range(25)]
    found = diagnosis(empty, *same)
    text = found.text()
    assert "  Empty.\n      00.png\n" in text
    assert "      09.png\n      and 15 more\n    → Export it again.\n" in text
    assert text.count("The same.") == 10
    assert "      9.png\n  and 15 more like this.\n    → Keep one.\n" in text
    assert text.count("→") == 2
    loaded = json.loads(json.dumps(found.to_dict()))
    assert loaded["ok"] is False
    assert [len(finding["files"]) for finding in loaded["findings"]] == [25, *[1] * 25]


def test_grouped_keeps_the_order() -> None:
    assert list(grouped([3, 1, 5, 2, 4], lambda number: number % 2).items()) == [(1, [3, 1, 5]), (0, [2, 4])]
