import numpy as np
import pytest
from scipy import sparse

from dpcml.data.items import Attributes, ItemTable
from dpcml.retrieval.explain import by_cooccurrence, by_interest
from dpcml.retrieval.profile import UserProfile

# Three places on a line; each of the user's vectors has the liked items around it.
PLACES = np.array([[0.0], [10.0], [20.0]], dtype=np.float32)
ITEMS = np.array([[0.1], [0.2], [0.3], [10.1], [10.2], [20.1], [0.4]], dtype=np.float32)
PROFILE = UserProfile(PLACES, ITEMS, np.arange(6))
TITLES = np.array(["Emma", "Persuasion", "Dune", "Alien", "The Thing", "Carrie", "Ubik"], dtype=object)


def table(*categories: set[str]) -> ItemTable:
    return ItemTable(np.arange(7), TITLES, Attributes.from_sets([*categories, {"Science Fiction"}]))


@pytest.mark.parametrize(
    ("categories", "names"),
    [
        ([{"Romance"}] * 3 + [{"Horror"}] * 2 + [{"Drama"}], ["Romance", "Horror", "Drama"]),
        ([{"War"}] * 2 + [{"Crime"}] + [{"Horror"}] * 2 + [{"Drama"}], ["War", "Horror", "Drama"]),
        ([{"Romance"}] * 3 + [{"Horror"}, {"Drama"}, {"Drama"}], ["Romance", "Drama / Horror", "Drama"]),
        ([{"Horror"}] * 6, ["Horror", "Horror, like Alien", "Horror, like Carrie"]),
    ],
)  # fmt: skip
def test_names_tell_interests_apart(categories, names):
    found = PROFILE.interests(table(*categories))
    assert [one.name for one in found] == names


def test_without_categories_the_nearest_item_is_the_name():
    found = PROFILE.interests(ItemTable(np.arange(7), TITLES))
    assert [one.name for one in found] == ["Emma", "Alien", "Carrie"]


def test_a_reason_names_what_item_and_interest_have_in_common():
    films = table({"Romance"}, {"Romance"}, {"Science Fiction"}, {"Horror"}, {"Horror"}, {"Drama"})
    reasons = by_interest(np.array([6]), PROFILE, films)
    assert reasons[0].name == "Romance"
    assert reasons[0].text == "because of your interest in Science Fiction: Dune, Persuasion, Emma"


def test_a_liked_item_is_no_reason_for_itself():
    films = table({"Romance"}, {"Romance"}, {"Crime"}, {"Horror"}, {"Horror"}, {"Drama"})
    emma, carrie = by_interest(np.array([0, 5]), PROFILE, films)
    assert emma.text == "because of your interest in Romance: Persuasion, Dune"
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
