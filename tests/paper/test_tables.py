"""Notes say what the figures say."""

import polars as pl
import pytest

from dpcml.paper.spec import Claim
from dpcml.paper.study_types.tables import claim_verdicts

CLAIM = Claim("one beats the other", "one", ("other",))


def runs(one: list[tuple[float, float]], other: list[tuple[float, float]]) -> pl.DataFrame:
    lines = [
        {"data": "d", "label": label, "seed": seed, "P@3": p, "MAP": m}
        for label, values in (("one", one), ("other", other))
        for seed, (p, m) in enumerate(values)
    ]
    return pl.DataFrame(lines)


def steady(p: float, m: float) -> list[tuple[float, float]]:
    """Three seeds around two figures."""
    return [(p + step, m + step) for step in (-0.001, 0.0, 0.001)]


@pytest.mark.parametrize(
    ("one", "verdict", "words"),
    [
        (steady(0.3, 0.3), "holds", "**holds** for *one* against *other*: of 2 metrics above 2; P@3 +10.00 ± 0.1"),
        (steady(0.1, 0.1), "fails", "**does not hold** for *one* against *other*: of 2 metrics below 2"),
        (steady(0.3, 0.1), "fails", "**does not hold** for *one* against *other*: of 2 metrics above 1, below 1"),
        (steady(0.3, 0.2), "level", "**is level** for *one* against *other*: of 2 metrics above 1, level 1"),
        ([(0.3, 0.3)], "level", "**is level** for *one* against *other*: of 2 metrics level 2; P@3 +10.00, one seed,"),
    ],
)  # fmt: skip
def test_a_claim_is_judged_by_the_figures(one, verdict, words):
    (note,) = claim_verdicts([CLAIM], runs(one, [(0.2, 0.2)] * len(one)), "d", ["P@3", "MAP"])
    assert note.verdict == verdict
    assert words in note.text


def test_gaps_within_the_noise_of_seeds_are_level():
    noisy = runs([(0.30, 0.3), (0.20, 0.3), (0.26, 0.3)], [(0.25, 0.2), (0.25, 0.2), (0.25, 0.2)])
    (note,) = claim_verdicts([CLAIM], noisy, "d", ["P@3", "MAP"])
    assert "above 1, level 1" in note.text
    assert "±" in note.text
    assert "over 3 seeds" in note.text


def test_more_claims_need_clearer_differences():
    frame = runs([(0.24, 0.3), (0.27, 0.3), (0.26, 0.3)], [(0.2, 0.2)] * 3)
    (alone,) = claim_verdicts([CLAIM], frame, "d", ["P@3"])
    assert alone.verdict == "holds"
    many = claim_verdicts([CLAIM] * 5, frame, "d", ["P@3"])
    assert {note.verdict for note in many} == {"level"}


def test_only_seeds_that_both_have_are_compared():
    (note,) = claim_verdicts([CLAIM], runs([(0.1, 0.1), (0.9, 0.9)], [(0.2, 0.2)]), "d", ["P@3"])
    assert "P@3 -10.00" in note.text


def test_what_was_not_run_is_not_judged():
    assert claim_verdicts([CLAIM], runs([(0.1, 0.1)], []), "d", ["P@3"]) == []
    assert claim_verdicts([CLAIM], pl.DataFrame(), "d", ["P@3"]) == []
