# %% [markdown]
# # Ratings: who likes what, and how sure are we
#
# Ratings are rows with two names, a user and a film. A table with two columns of text is all that is needed: each name becomes
# a feature, and the interactions of users and films are learned as a matrix of low rank. Nothing has to be tuned.

# %%
import numpy as np
import pandas as pd

from dyad import FactorizationRegressor

random = np.random.default_rng(0)
users, films, count = 300, 200, 30_000
taste = random.normal(size=(users, 2)), random.normal(size=(films, 2))
user, film = random.integers(users, size=count), random.integers(films, size=count)
stars = 3 + 0.8 * (taste[0][user] * taste[1][film]).sum(axis=1) + 0.5 * random.normal(size=count)
ratings = pd.DataFrame({"user": [f"user {i}" for i in user], "film": [f"film {j}" for j in film]})
stars = np.clip(np.round(stars), 1, 5)

# %% [markdown]
# The last rows are kept aside. The range of the stars is found in the data: predictions stay within it.

# %%
model = FactorizationRegressor(rank=4).fit(ratings[:-5000], stars[:-5000])
fresh, truth = ratings[-5000:], stars[-5000:]
values, deviations = model.predict(fresh, return_std=True)
rmse = np.sqrt(np.mean((values - truth) ** 2))
print(f"rmse {rmse:.3f}, of the best constant {truth.std():.3f}")
print(f"within one error bar: {np.mean(np.abs(values - truth) < deviations):.0%}")
assert rmse < 0.75 * truth.std()

# %% [markdown]
# A film without ratings has no effect, so the prediction depends on the user alone.

# %%
new = pd.DataFrame({"user": ["user 1"], "film": ["a film of tomorrow"]})
print(f"a new film for user 1: {model.predict(new)[0]:.2f}")

# %%
print(model.interactions(top=5).round(2).to_string(index=False))
