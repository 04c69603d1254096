"""See the interests of a user, and choose how much each of them counts in a list.

The best scores alone may leave an interest out. The larger ``mix``, the more items come from outside the user's
largest interest; ``mix_by="interests"`` takes the user's vectors as interests, not the categories of the items.
"""

from collections import Counter

from dpcml import DPCML, planted

data = planted(400, 250, majority_share=0.7, seed=4).data
model = DPCML(n_vectors=3, dim=16, epochs=50).fit(data)

# Take a user with several interests of different size.
user = next(user for user in data.user_ids if len(model.interests(user)) == 3)
print(f"User {user}")
for interest in model.interests(user):
    titles = [data.items.title(column) for column in data.item_columns(interest.items[:3])]
    print(f"  {interest.share:4.0%} {interest.name}: {', '.join(titles)}")

# The larger mix, the more of the list belongs to smaller interests.
for mix in (0.0, 0.5, 1.0):
    _, _, reasons = model.recommend(user, n=12, mix=mix, mix_by="interests", explain=True)
    served = Counter(reason.name for reason in reasons)
    print(f"mix={mix}: " + ", ".join(f"{count} of {name}" for name, count in served.most_common()))

# Only one category, whatever the mix.
category = model.interests(user)[-1].categories[0][0]
ids, _ = model.recommend(user, n=3, where={"category": category})
print(f"Only {category}: " + ", ".join(data.items.title(column) for column in data.item_columns(ids)))
