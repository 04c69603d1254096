"""Recommend to users who were not in the training data, without training again.

`recommend_new` takes the items that somebody likes. `fold_in` returns the vectors behind it: those that training would
look for, while the items keep theirs. `partial_fit` adds new users to the model for good.
"""

import numpy as np

from dpcml import DPCML, Interactions, planted

data = planted(400, 250, seed=2).data
new_users = np.arange(350, 400)  # the last 50 users sign up later
train = data.select(data.rows < 350)
model = DPCML(n_vectors=3, dim=16, epochs=50).fit(train)

# Half of the likes of each new user are known; the others should be recommended.
found = chance = total = 0
for user in new_users:
    likes = data.item_ids[data.of(user)]
    history, hidden = likes[::2], likes[1::2]
    ids, _ = model.recommend_new(history, n=20)
    found += len(np.intersect1d(ids, hidden))
    total += len(hidden)
    chance += len(hidden) * 20 / data.n_items
print(f"recall@20 of {len(new_users)} new users: {found / total:.2f}, by chance {chance / total:.2f}")

# The same with reasons, and the interests that the history shows.
history = data.item_ids[data.of(new_users[0])]
for interest in model.interests_new(history):
    print(f"interest in {interest.name}: {interest.share:.0%} of the history")
ids, _, reasons = model.recommend_new(history, n=3, explain=True)
for item, reason in zip(ids, reasons, strict=True):
    print(f"  {data.items.title(data.item_columns([item])[0])}: {reason.text}")
print("vectors of the new user:", model.fold_in(history).shape)

# From now on the user has an id of its own.
row = Interactions.from_csr(np.ones((1, len(history))), user_ids=[9000], item_ids=history)
print("first recommendation for user 9000:", model.partial_fit(row).recommend(9000, n=1)[0][0])
