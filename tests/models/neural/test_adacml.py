import numpy as np

from dpcml.models.neural.history import histories


def test_short_histories_are_whole_and_long_ones_a_part(likes):
    found = histories(likes, 4, seed=3)
    assert found.shape == (20, 4)
    for user, row in enumerate(found):
        kept = row[row >= 0]
        assert len(set(kept.tolist())) == len(kept) == min(4, len(likes.of(user)))
        assert np.isin(kept, likes.of(user)).all()
        assert (row[len(kept) :] == -1).all()
    assert (found == histories(likes, 4, seed=3)).all()
    assert (found != histories(likes, 4, seed=4)).any()


def test_every_item_of_a_long_history_may_be_kept(likes):
    longest = int(np.argmax(likes.per_user))
    seen = {item for seed in range(50) for item in histories(likes, 2, seed)[longest].tolist()}
    assert seen == set(likes.of(longest).tolist())


def test_no_wider_than_the_longest(likes):
    assert histories(likes, 1000, seed=0).shape[1] == likes.per_user.max()
