"""The page: everything that was found, explained, escaped, and fetched from nowhere."""

from __future__ import annotations

import re

from fcdd.audit import compare
from fcdd.audit.findings import Audit, Finding, Illustration, Question, Severity, ranked
from fcdd.audit.page import ASKED, page

HOSTILE = '<script>alert("x")</script>'


def make(severity: Severity, effect: float, question: Question = Question.RECURRING) -> Finding:
    images = [Illustration(f"caption {HOSTILE}", "data:image/png;base64,AAAA")]
    return Finding(question, severity, f"title {effect}", HOSTILE, "do this", images, effect, {"x_y": 1.5}, [HOSTILE])


def test_all_findings_are_on_the_page_and_nothing_runs() -> None:
    findings = ranked([make(Severity.LOW, 0.1), make(Severity.HIGH, 0.2), make(Severity.HIGH, 0.9, Question.HEAT)])
    assert [f.effect for f in findings] == [0.9, 0.2, 0.1]
    text = page(Audit("m", "p", {"good": 3}, {}, findings, 1.0))
    assert "<script" not in text
    assert text.count("&lt;script&gt;") >= 6
    assert not re.search(r"(src|href)=.?https?:", text)
    assert all(f'id="finding-{n}"' in text for n in range(3))
    assert "The score rests on something that is not the part" in text
    assert all(title in text for title, _ in ASKED.values())
    assert "too few images" in text  # for the questions without an answer


def test_severities_and_their_limit() -> None:
    result = Audit("m", "p", {}, {}, ranked([make(Severity.MEDIUM, 0), make(Severity.NONE, 0)]), 0.0)
    assert result.counts == {"high": 0, "medium": 1, "low": 0, "unknown": 0, "none": 1}
    assert not result.reaches("high")
    assert result.reaches("medium")
    assert result.reaches("low")


def test_the_comparison_is_escaped_and_says_what_changed() -> None:
    side = compare.Side(HOSTILE, 0.5, 0.25, 0.0, 0.9)
    told = compare.Comparison(side, compare.Side("after", 0.05, 0.0, 0.0, 0.9), 12, {f"NG → {HOSTILE}": 3})
    text = compare.page(told)
    assert "<script" not in text
    assert "The cue moves the score by 90% less" in text
    assert "3 × NG → &lt;script&gt;" in text
    assert "Of 12 clean images" in text
