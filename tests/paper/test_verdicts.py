import numpy as np
import pytest
from scipy import stats

from dpcml.paper.verdicts import holm, judge, paired_gap, verdict_of


@pytest.mark.parametrize("n", [2, 3, 5])
def test_p_values_are_those_of_a_paired_t_test(n):
    differences = np.random.default_rng(n).normal(0.3, 0.4, n)
    assert paired_gap("MAP", differences).p == pytest.approx(stats.ttest_1samp(differences, 0).pvalue)


def test_differences_that_are_the_same_in_every_seed():
    assert paired_gap("MAP", np.full(3, 0.1)).side == 1
    assert paired_gap("MAP", np.zeros(3)).side == 0


def test_holm_against_its_definition():
    p = [0.001, 0.2, 0.02, 0.02]
    assert holm(p) == pytest.approx([0.004, 0.2, 0.06, 0.06])
    assert holm([]) == []


def test_each_metric_is_corrected_for_the_claims_that_have_it():
    p = [paired_gap("MAP", np.array([0.1, 0.12, 0.15])), paired_gap("P@3", np.array([0.1, 0.12, 0.15]))]
    both, alone = judge([p, p[:1]])
    assert both.gaps[0].p == pytest.approx(2 * p[0].p)
    assert both.gaps[1].p == pytest.approx(p[1].p)
    assert alone.gaps[0].p == pytest.approx(2 * p[0].p)


def test_half_of_the_metrics_are_not_most():
    assert verdict_of([1, 1, 0, 0]) == "level"
    assert verdict_of([1, 1, 1, 0]) == "holds"
    assert verdict_of([1, 1, 1, -1]) == "fails"
