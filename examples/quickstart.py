"""From CSV files of your own to explained recommendations.

Run ``python examples/quickstart.py likes.csv items.csv``. The first file has one row per like, with columns for user
and item. The second one is optional: ids, titles and categories of the items make explanations readable. Without
arguments, generated files are used.
"""

import csv
import sys
import tempfile
from pathlib import Path

from dpcml import DPCML, Interactions, evaluate, load, planted, save

folder = Path(tempfile.mkdtemp())


def write_files() -> tuple[Path, Path]:
    """Write likes and items of generated data, as an example of the formats."""
    world = planted(300, 200, seed=0)
    likes, items = folder / "likes.csv", folder / "items.csv"
    world.write_csv(likes)  # user_id, item_id and more columns, which are ignored here
    with items.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item_id", "title", "category"])
        table = world.data.items
        writer.writerows([item, table.title(item), *table.attributes.of(item)] for item in range(len(table)))
    return likes, items


likes, items = (*map(Path, sys.argv[1:]), None)[:2] if len(sys.argv) > 1 else write_files()
data = Interactions.from_file(likes, items=items, min_user_interactions=5)
print(data)

# Hold positives out, to see how good the model is. With a validation part, training stops early.
train, valid, test = data.split((0.6, 0.2, 0.2), rng=0)
model = DPCML(n_vectors=3, dim=16, epochs=50).fit(train, valid)
print(evaluate(model, train, test, valid=valid, metrics=["P@10", "NDCG@10", "coverage@10"]))

# Train on everything, for as many epochs as were best, and recommend.
model = DPCML(n_vectors=3, dim=16, epochs=model.history_.best.number).fit(data)
user = data.user_ids[0]
ids, scores, reasons = model.recommend(user, n=5, explain=True)
print(f"\nFor user {user}:")
for column, score, reason in zip(data.item_columns(ids), scores, reasons, strict=True):
    print(f"  {data.items.title(column):<28} {score:6.3f}  {reason.text}")

# A saved model is a folder of safetensors and JSON.
save(model, folder / "model")
assert (load(folder / "model").recommend(user, n=5)[0] == ids).all()
