"""Compare models honestly: the same splits, several seeds, several metrics, and a test of significance.

One split and one seed say little: differences between good models are often smaller than the noise. Here every model
is trained and tested on three splits. Simple models belong in every comparison: on small data they are hard to beat.
`compare` prints means and standard deviations, marks the best model of every column with ``*``, and with ``=`` the
models that a paired t-test over users cannot tell apart from it.
"""

from dpcml import CML, DPCML, EASE, Popularity, compare, evaluate, planted

data = planted(400, 250, majority_share=0.5, seed=1).data
metrics = ["NDCG@10", "R@10", "minority_R@10", "attribute_ILD@10", "coverage@10"]

reports = []
for seed in range(3):
    train, valid, test = data.split((0.6, 0.2, 0.2), rng=seed)
    vectors = {"dim": 16, "epochs": 50, "random_state": seed}
    for model in (Popularity(), EASE(), CML(**vectors), DPCML(n_vectors=3, **vectors)):
        model.fit(train, valid)  # models that learn in one step do not need the validation part
        reports.append(evaluate(model, train, test, valid=valid, metrics=metrics))

print(compare(reports))

# Every report says under which protocol its figures hold; `compare` refuses to mix protocols.
last = reports[-1]
print(f"\n{last.label}: protocol {last.protocol}, split {last.split}, {last.n_users} users, dpcml {last.version}")
