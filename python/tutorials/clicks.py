# %% [markdown]
# # Clicks: online learning from a stream
#
# Each row is predicted before the model learns it. New users and adverts are added as new features. Memory grows with the number
# of features, not with the number of rows.

# %%
import numpy as np

from dyad import Learner

random = np.random.default_rng(0)
preferences = random.normal(size=(50, 30))
learner = Learner("classification", rank=4)
losses = []
for step in range(20_000):
    person, advert = random.integers(50), random.integers(30)
    click = bool(random.random() < 1 / (1 + np.exp(2 - 2 * preferences[person, advert])))
    row = {"person": f"p{person}", "advert": f"a{advert}", "hour": step % 24 / 24}
    probability = learner.predict_proba_one(row).get(True, 0.5)
    losses.append(-np.log(max(1e-12, probability if click else 1 - probability)))
    learner.learn_one(row, click)

first, last = np.mean(losses[:2000]), np.mean(losses[-2000:])
print(f"log-loss of the first 2,000 rows: {first:.3f}; of the last 2,000: {last:.3f}")
print(f"{learner.rows} rows; {learner.origin}")
assert last < first

# %% [markdown]
# Log-loss of blocks of 1,000 rows. The dashed line is the entropy of the true probabilities, which no model can fall below on average.

# %%
import matplotlib.pyplot as plt

probabilities = 1 / (1 + np.exp(2 - 2 * preferences))
entropy = -np.mean(probabilities * np.log(probabilities) + (1 - probabilities) * np.log(1 - probabilities))
figure, axes = plt.subplots(figsize=(6, 3))
axes.plot(np.arange(500, 20_000, 1000), np.reshape(losses, (-1, 1000)).mean(axis=1), marker="o")
axes.axhline(entropy, color="gray", linestyle="--")
axes.set(xlabel="rows", ylabel="log-loss")
