# %% [markdown]
# # Clicks: a stream that never ends
#
# Rows come one at a time, with new names, and each is predicted before it is learned. Memory grows with
# the names, not with the rows.

# %%
import numpy as np

from dyad import Learner

random = np.random.default_rng(0)
likes = random.normal(size=(50, 30))
learner = Learner("classification", rank=4)
losses = []
for step in range(20_000):
    person, advert = random.integers(50), random.integers(30)
    click = bool(random.random() < 1 / (1 + np.exp(2 - 2 * likes[person, advert])))
    row = {"person": f"p{person}", "advert": f"a{advert}", "hour": step % 24 / 24}
    chance = learner.predict_proba_one(row).get(True, 0.5)
    losses.append(-np.log(max(1e-12, chance if click else 1 - chance)))
    learner.learn_one(row, click)

first, last = np.mean(losses[:2000]), np.mean(losses[-2000:])
print(f"log-loss of the first 2,000 rows {first:.3f}, of the last {last:.3f}")
print(f"{learner.rows} rows; {learner.origin}")
assert last < first
