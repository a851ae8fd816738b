"""Spectral clustering of maps: the eigengap finds the groups, and a small focused one of one label is suspicious."""

from __future__ import annotations

import numpy as np
import pytest

from fcdd.audit.findings import Question, Severity
from fcdd.audit.strategies import FOCUSED, Cluster, answer, fewest_members, focus, is_suspicious, spectral

from .conftest import Case, only


def test_the_eigengap_finds_the_number_of_groups() -> None:
    random = np.random.default_rng(0)
    for groups in (2, 3, 5):
        centres = 10 * np.eye(6)[:groups]
        points = np.concatenate([centre + random.normal(0, 0.3, (25, 6)) for centre in centres])
        labels = spectral(points, most=8)
        truth = np.repeat(np.arange(groups), 25)
        assert len(np.unique(labels)) == groups
        assert all(len(np.unique(labels[truth == g])) == 1 for g in range(groups))


def test_groups_that_no_plane_parts_are_parted() -> None:
    angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle)], 1)
    labels = spectral(np.concatenate([ring, 4 * ring]), most=4)
    assert len(np.unique(labels)) == 2
    assert len(np.unique(labels[:60])) == 1


def test_only_small_focused_anomalous_clusters_are_suspicious() -> None:
    members = np.arange(10)
    assert is_suspicious(Cluster(members, 0.05, "stamp", 1.0, 1.0, 1e-6), 60, 3)
    assert not is_suspicious(Cluster(members, 0.6, "stamp", 1.0, 1.0, 1e-6), 60, 3)
    assert not is_suspicious(Cluster(members, 0.05, "stamp", 1.0, 0.5, 0.4), 60, 3)
    assert not is_suspicious(Cluster(np.arange(40), 0.05, "stamp", 1.0, 1.0, 1e-6), 60, 3)


def test_heat_in_one_place_is_focused_in_spite_of_a_faint_glow() -> None:
    heat = np.full((16, 16), 0.3)
    assert focus(heat) == pytest.approx(1)
    heat[:4, :4] = 10
    assert focus(heat) < 0.6 * FOCUSED  # 1/16 of the cells, and a little for the glow
    many = np.full((16, 16), 0.3)
    many[::4, ::2] = np.random.default_rng(0).uniform(1, 3, (4, 8))  # defects, each in a place of its own
    assert focus(many) > FOCUSED
    assert focus(np.zeros((16, 16))) == 0


def test_stamped_plates_share_a_strategy(stamped: Case) -> None:
    (finding,) = answer(stamped.evidence, quiet=True)
    assert finding.question is Question.STRATEGIES
    assert finding.severity is Severity.LOW
    assert "suspicious ones first" in finding.sentence
    assert finding.images
    assert "anomalous images or more would be told from chance" in finding.power


def test_the_fewest_members_are_the_fewest_that_are_suspicious() -> None:
    assert fewest_members(3, 45, 3) == 2  # 3 pairs of 990
    assert fewest_members(9, 45, 3) == 4
    assert fewest_members(1, 45, 3) is None
    assert fewest_members(30, 40, 8) is None  # so many of all are anomalous that a group of them is no wonder


def test_few_images_are_too_few_to_say(plain: Case) -> None:
    for rows in (plain.evidence.good, plain.evidence.good[:20]):
        (finding,) = answer(only(plain.evidence, rows), quiet=True)
        assert finding.severity is Severity.UNKNOWN
        assert finding.power
