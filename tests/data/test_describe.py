"""Counts, preference diversity against a brute-force twin, and charts."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

import dpcml.data.describe as module
from dpcml.data.charts import plot
from dpcml.data.describe import Category, Description, categories, describe, preference_diversity
from dpcml.data.interactions import Interactions
from dpcml.data.items import Attributes, ItemTable
from dpcml.utils.arrays import FloatArray
from dpcml.utils.errors import DataError, ParameterError

GENRES = ["Action", "Comedy", "Drama", "Horror", "War"]


def world(seed: int, users: int = 40, items: int = 30, density: float = 0.2) -> Interactions:
    rng = np.random.default_rng(seed)
    sets = [set(rng.choice(GENRES, rng.integers(0, 4), replace=False).tolist()) for _ in range(items)]
    table = ItemTable(np.arange(items), attributes=Attributes.from_sets(sets))
    return Interactions.from_csr(rng.random((users, items)) < density, items=table)


def twin(data: Interactions) -> FloatArray:
    attributes = data.items.attributes
    assert attributes is not None
    values = []
    for user in range(data.n_users):
        pairs = list(permutations(data.of(user).tolist(), 2))
        apart = [not set(attributes.of(a)) & set(attributes.of(b)) for a, b in pairs]
        values.append(np.mean(apart) if pairs else np.nan)
    return np.array(values)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("density", [0.03, 0.3, 1.0])
def test_preference_diversity_equals_its_twin(seed: int, density: float) -> None:
    data = world(seed, density=density)
    np.testing.assert_allclose(preference_diversity(data), twin(data), atol=1e-12)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    data = world(1)
    whole = preference_diversity(data)
    monkeypatch.setattr(module, "BLOCK", 10)
    np.testing.assert_array_equal(preference_diversity(data), whole)


def test_the_data_stays_as_it_is() -> None:
    data = world(2)
    before = data.indptr.copy(), data.indices.copy(), data.items.attributes.matrix.toarray()  # type: ignore[union-attr]
    describe(data)
    assert (data.indptr == before[0]).all()
    assert (data.indices == before[1]).all()
    assert (data.items.attributes.matrix.toarray() == before[2]).all()  # type: ignore[union-attr]


def test_diversity_needs_attributes() -> None:
    data = Interactions.from_csr(np.ones((2, 2)))
    for function in (preference_diversity, categories):
        with pytest.raises(DataError, match="no attributes"):
            function(data)
    shown = describe(data)
    assert shown.preference_diversity is None
    assert shown.categories is None


def test_users_with_one_item_have_no_diversity() -> None:
    table = ItemTable(np.arange(2), attributes=Attributes.from_sets([{"a"}, {"b"}]))
    data = Interactions.from_csr(np.eye(2), items=table)
    assert np.isnan(preference_diversity(data)).all()
    assert describe(data).preference_diversity is None


def test_items_without_attributes_meet_nobody() -> None:
    table = ItemTable(np.arange(3), attributes=Attributes.from_sets([set(), set(), {"a"}]))
    assert preference_diversity(Interactions.from_csr(np.ones((1, 3)), items=table)).tolist() == [1.0]


def test_counts() -> None:
    matrix = np.zeros((3, 4))
    matrix[0, [0, 1, 2]] = matrix[1, 0] = matrix[2, 2] = 1
    table = ItemTable(np.array([10, 20, 30, 99]))
    shown = describe(Interactions.from_csr(matrix, item_ids=table.ids, items=table))
    assert (shown.users, shown.items, shown.item_id_space, shown.positives) == (3, 3, 100, 5)
    assert shown.density_percent == pytest.approx(100 * 5 / 300)
    assert shown.density_percent_distinct == pytest.approx(100 * 5 / 9)
    spread = shown.positives_per_user
    assert (spread.min, spread.median, spread.mean, spread.max) == (1, 1.0, pytest.approx(5 / 3), 3)


def test_categories_count_items_and_positives() -> None:
    table = ItemTable(np.arange(3), attributes=Attributes.from_sets([{"a"}, {"a", "b"}, {"c"}]))
    data = Interactions.from_csr([[1, 1, 0], [0, 1, 0]], items=table)
    assert categories(data) == (Category("a", 2, 3), Category("b", 1, 2))  # nobody likes the only item of c


def test_to_dict_is_json_and_says_how_many_categories_it_leaves_out() -> None:
    names = [{f"tag {number:03}"} for number in range(150)]
    table = ItemTable(np.arange(150), attributes=Attributes.from_sets(names))
    figures = describe(Interactions.from_csr(np.ones((2, 150)), items=table)).to_dict()
    assert {"users", "items", "item_id_space", "positives", "density_percent"} <= figures.keys()
    assert json.loads(json.dumps(figures, allow_nan=False))["category_count"] == 150
    assert len(figures["categories"]) == 100
    assert sum(figures["preference_diversity"]["counts"]) == 2


def test_empty_data_is_refused() -> None:
    with pytest.raises(DataError, match="nothing to describe"):
        describe(Interactions.from_csr(np.zeros((0, 3))))


@pytest.fixture
def shown() -> Description:
    return describe(world(3))


@pytest.mark.parametrize(
    ("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF"), (".PNG", b"\x89PNG")]
)
def test_plot_writes_a_figure(shown: Description, tmp_path: Path, suffix: str, start: bytes) -> None:
    pytest.importorskip("matplotlib")
    path = plot(shown, tmp_path / f"figure{suffix}", title="a world")
    assert path.read_bytes().startswith(start)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.filterwarnings("ignore:Glyph")
def test_plot_takes_any_name(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    names = [{"$x_{$"}, {"\\frac $"}, {"a" * 200}, {"日本"}]
    table = ItemTable(np.arange(4), attributes=Attributes.from_sets(names))
    assert plot(describe(Interactions.from_csr(np.ones((2, 4)), items=table)), tmp_path / "a.svg").is_file()


def test_plot_refuses_what_it_cannot_do(shown: Description, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"figure\.bmp.*\.png, \.svg, \.pdf"):
        plot(shown, tmp_path / "figure.bmp")
    with pytest.raises(DataError, match="no attributes"):
        plot(describe(Interactions.from_csr(np.ones((2, 2)))), tmp_path / "figure.png")
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match=r"figure\.png: cannot"):
        plot(shown, tmp_path / "file" / "figure.png")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
