import numpy as np
import pytest
from scipy import sparse

from dpcml.data.items import Attributes, ItemTable
from dpcml.retrieval.explain import by_cooccurrence, by_interest
from dpcml.retrieval.profile import UserProfile, distinctive_categories, interest_names, usual_shares

# Three places on a line; each of the user's vectors has the liked items around it.
PLACES = np.array([[0.0], [10.0], [20.0]], dtype=np.float32)
ITEMS = np.array([[0.1], [0.2], [0.3], [10.1], [10.2], [20.1], [0.4]], dtype=np.float32)
PROFILE = UserProfile(PLACES, ITEMS, np.arange(6))
TITLES = np.array(["Emma", "Persuasion", "Dune", "Alien", "The Thing", "Carrie", "Ubik"], dtype=object)


def table(*categories: set[str]) -> ItemTable:
    return ItemTable(np.arange(7), TITLES, Attributes.from_sets([*categories, {"Science Fiction"}]))


def test_names_are_what_distinguishes_interests():
    kinds = [{"Drama", "Romance"}, {"Drama", "Romance"}, {"Drama"}, {"Drama", "Horror"}, {"Drama", "Horror"}, {"Drama"}]
    found = PROFILE.interests(table(*kinds))
    assert [one.name for one in found] == ["Romance", "Horror", "Carrie"]  # Drama is everywhere; one item proves little
    assert [one.distinctive for one in found] == [("Romance",), ("Horror",), ()]
    assert found[0].categories[0] == ("Drama", pytest.approx(2 / 3))  # still the most frequent one


def test_what_everybody_likes_is_no_name():
    films = table(*[{"War"}] * 3, *[{"Crime"}] * 2, {"Drama"})
    usual = usual_shares(films, np.array([90, 90, 90, 1, 1, 1, 1]))
    assert [one.name for one in PROFILE.interests(films)] == ["War", "Crime", "Carrie"]
    assert [one.name for one in PROFILE.interests(films, usual)][:2] == ["Emma and Persuasion", "Crime"]


def test_a_name_comes_from_the_nearer_items():
    items = np.arange(40, dtype=np.float32)[:, None] / 40
    kinds = [{"Western"}] * 12 + [{"Comedy"}] * 28
    films = ItemTable(np.arange(40), attributes=Attributes.from_sets(kinds))
    one = UserProfile(np.zeros((1, 1), np.float32), items, np.arange(24)).interests(films)[0]
    assert (one.name, one.categories[0][1]) == ("Western", 0.5)


def test_no_two_interests_have_the_same_name():
    films = ItemTable(np.arange(7), TITLES)
    groups = [np.arange(3), np.array([3, 4]), np.array([5]), np.array([6]), np.array([6])]
    names = interest_names(groups, [{"War": 1.0, "Crime": 0.9}, {"Drama": 1.0, "Comedy": 0.1}, {}, {}, {}], films)
    assert names == ["War / Crime", "Drama", "Carrie", "Ubik", "Ubik (2)"]


def test_a_category_names_one_interest_and_most_of_its_items_have_it():
    rng = np.random.default_rng(8)
    kinds = [set(rng.choice(list("ABCDEF"), rng.integers(1, 4), replace=False).tolist()) for _ in range(200)]
    films = ItemTable(np.arange(200), attributes=Attributes.from_sets(kinds))
    shared = [np.array([item for item, own in enumerate(kinds) if name in own]) for name in "ABC"]
    for _ in range(20):
        groups = [rng.choice(items, 15, replace=False) for items in shared]  # most of them have more in common
        found = distinctive_categories(groups, films)
        named = [name for one in found for name in one]
        assert len(named) == len(set(named)) >= 2
        for group, own in zip(groups, found, strict=True):
            assert all(sum(name in kinds[item] for item in group) >= 0.3 * len(group) for name in own)


def test_without_categories_typical_items_are_the_name():
    found = PROFILE.interests(ItemTable(np.arange(7), TITLES))
    assert [one.name for one in found] == ["Emma and Persuasion", "Alien and The Thing", "Carrie"]


def test_a_reason_names_what_item_and_interest_have_in_common():
    films = table({"Romance"}, {"Romance", "Science Fiction"}, {"Science Fiction"}, {"Horror"}, {"Horror"}, {"Drama"})
    ubik = by_interest(np.array([6]), PROFILE, films)[0]
    assert (ubik.name, ubik.categories) == ("Science Fiction", ("Science Fiction",))
    assert ubik.text == "because of your interest in Science Fiction: Dune, Persuasion"  # Emma is no Science Fiction


def test_a_reason_names_nothing_that_does_not_distinguish_the_interest():
    films = table(*[{"Science Fiction", "Romance"}] * 3, *[{"Science Fiction", "Horror"}] * 2, {"Science Fiction"})
    assert PROFILE.interests(films)[0].name == "Romance"
    ubik = by_interest(np.array([6]), PROFILE, films)[0]
    assert (ubik.name, ubik.categories) == ("Dune and Persuasion", ("Science Fiction",))
    assert ubik.text == "because you like Dune, Persuasion, Emma"  # everything that the user likes is Science Fiction


def test_a_reason_names_no_category_that_the_item_lacks():
    films = table({"Romance"}, {"Romance"}, {"Romance"}, {"Horror"}, {"Horror"}, {"Drama"})
    ubik = by_interest(np.array([6]), PROFILE, films)[0]
    assert (ubik.name, ubik.categories) == ("Dune and Persuasion", ())
    assert ubik.text == "because you like Dune, Persuasion, Emma"
    everybody = sparse.csr_array(np.ones((7, 2)))
    by_likes = by_cooccurrence(np.array([6]), np.array([0, 1]), everybody, films)[0]
    assert (by_likes.name, by_likes.categories) == ("Emma and Persuasion", ())


def test_reasons_on_random_data_never_name_what_the_item_lacks():
    rng = np.random.default_rng(3)
    items, vectors = rng.standard_normal((300, 6)).astype(np.float32), rng.standard_normal((4, 6)).astype(np.float32)
    kinds = [set(rng.choice(list("ABCDEF"), rng.integers(0, 4), replace=False).tolist()) for _ in range(300)]
    films = ItemTable(np.arange(300), attributes=Attributes.from_sets(kinds))
    profile = UserProfile(vectors, items, np.arange(100))
    reasons = by_interest(np.arange(100, 300), profile, films)
    named = [(kinds[item], reason) for item, reason in enumerate(reasons, 100) if "interest in" in reason.text]
    assert len(named) > 10
    assert all({reason.name, *reason.categories} <= own for own, reason in named)
    assert all(reason.liked and all(reason.name in kinds[one] for one in reason.liked) for _, reason in named)
    of_interests = {one.number: one.distinctive for one in profile.interests(films)}
    assert all(reason.name in of_interests[reason.interest] for _, reason in named)
    assert all(f"interest in {reason.name}:" in reason.text for _, reason in named)


def test_a_liked_item_is_no_reason_for_itself():
    films = table({"Romance"}, {"Romance"}, {"Crime"}, {"Horror"}, {"Horror"}, {"Drama"})
    emma, carrie = by_interest(np.array([0, 5]), PROFILE, films)
    assert emma.text == "because of your interest in Romance: Persuasion"  # Dune is Crime
    assert carrie.text == "because you like The Thing, Alien, Dune"  # the interest has no other item
    everybody = sparse.csr_array(np.ones((7, 2)))
    assert by_cooccurrence(np.array([1]), np.array([0, 1]), everybody, films)[0].text == "because you like Emma"
    assert by_cooccurrence(np.array([1]), np.array([1]), everybody, films)[0].text == "because others like it"


def test_vectors_that_repeat_the_first_are_no_interests():
    """As equal vectors may differ in the last bit of a distance, many items are assigned."""
    rng = np.random.default_rng(0)
    items, vectors = rng.standard_normal((500, 9)).astype(np.float32), rng.standard_normal((2, 9)).astype(np.float32)
    two = UserProfile(vectors, items, np.arange(400))
    five = UserProfile(vectors[[0, 1, 0, 0, 0]], items, np.arange(400))
    assert (five.owner == two.owner).all()
    assert five.shares.tolist() == [*two.shares.tolist(), 0, 0, 0]
    table = ItemTable(np.arange(500))
    found, expected = ([one.to_dict() for one in each.interests(table)] for each in (five, two))
    assert found == expected
    assert by_interest(np.arange(400, 500), five, table) == by_interest(np.arange(400, 500), two, table)


def test_a_single_interest():
    one = UserProfile(np.repeat(PLACES[:1], 3, axis=0), ITEMS, np.arange(6))
    assert [(interest.number, interest.share) for interest in one.interests(ItemTable(np.arange(7)))] == [(0, 1.0)]
