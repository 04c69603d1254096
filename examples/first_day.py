"""The first day with data of your own: files, a look at them, models compared, the first lists, everyday requests.

Run ``python examples/first_day.py ratings.csv items.csv``. The first file has a row per rating with columns for user,
item, rating and time; the second one ids, titles and genres of the items. Without arguments, generated files are used.
"""

import csv
import sys
import tempfile
from pathlib import Path

import numpy as np

from dpcml import (
    DPCML,
    EASE,
    Interactions,
    ItemKNN,
    Popularity,
    compare_models,
    evaluate,
    load,
    planted,
    save,
    split_by,
)

folder = Path(tempfile.mkdtemp())


def write_files() -> tuple[Path, Path]:
    """Write ratings and items of generated data, as an example of the formats."""
    data = planted(300, 200, seed=0).data
    stars = np.random.default_rng(0).integers(2, 6, data.n_positives)  # some liked it, some did not
    ratings, items = folder / "ratings.csv", folder / "items.csv"
    with ratings.open("w", newline="") as file:
        rows = zip(data.rows, data.item_ids[data.indices], stars, np.arange(data.n_positives) * 977 % 5000, strict=True)
        csv.writer(file).writerows([("user_id", "item_id", "rating", "timestamp"), *rows])
    with items.open("w", newline="") as file:
        described = [(k, data.items.title(k), "|".join(data.items.attributes.of(k))) for k in range(data.n_items)]
        csv.writer(file).writerows([("item_id", "title", "genres"), *described])
    return ratings, items


# Morning: read the files, and look at what was guessed. Ratings from 3 on are likes, and count by their stars.
ratings, items = map(Path, sys.argv[1:3]) if len(sys.argv) > 2 else write_files()
data = Interactions.from_file(ratings, items=items, min_rating=3, weight="rating", min_user_interactions=5)
print(data)
for line in data.preparation.lines():
    print(f"- {line}")

# Which model? Repeated splits say how much is chance; the last likes of each user are a harder question.
models = {"popularity": Popularity(), "itemknn": ItemKNN(), "ease": EASE()}
unweighted = Interactions.from_file(ratings, items=items, min_rating=3, min_user_interactions=5)
print(compare_models(models, unweighted, folds=3, metrics=["NDCG@10", "minority_R@10"]))
print(compare_models(models, unweighted, folds=1, split="last", metrics=["HR@10"]))

# Noon: one model, its figures on likes that it has not seen, and then the model for use, which has learned everything.
train, valid, test = split_by(data, "ratio", seed=0)
found = DPCML(n_vectors=3, dim=16, epochs=50).fit(train, valid)
print(evaluate(found, train, test, valid=valid, metrics=["NDCG@10", "minority_R@10"]))
model = found.settled().fit(data)

# Afternoon: lists. Nothing that the user knows is in them, rated low or high.
user = data.user_ids[0]
ids, _, reasons = model.recommend(user, n=10, explain=True)
known = {*data.of(0).tolist(), *data.low_rated_of(0).tolist()}
print(f"\nFor user {user}, of ten items {len(known & set(data.item_columns(ids).tolist()))} are known:")
for column, reason in zip(data.item_columns(ids), reasons, strict=True):
    print(f"  {data.items.title(column):<28} {reason.text}")
for interest in model.interests(user):
    print(f"interest in {interest.name}: {interest.share:.0%}")

# Everyday requests: a user nobody knows, items that are sold out, a genre, several users as a frame, someone new.
print(model.recommend([user, "nobody"], n=2, on_unknown="popular", as_frame=True))
genre = str(data.items.attributes.of(int(data.item_columns(ids[:1])[0]))[0])
print(f"in {genre}, without the first:", model.recommend(user, n=3, where={"category": genre}, exclude=ids[:1])[0])
print("similar to two items:", model.similar_items(ids[:2], n=2)[0].tolist())
print("for someone who likes these two:", model.recommend_new(ids[:2], n=3)[0])

# Evening: a folder without pickle, which `dpcml serve` serves.
save(model, folder / "model")
assert (load(folder / "model").recommend(user, n=10)[0] == ids).all()
print(f"next: dpcml serve {folder / 'model'}")
