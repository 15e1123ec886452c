# %% [markdown]
# # Ratings: predictions with standard deviations
#
# A rating has a user and a film, two columns of strings in a table. Each user and each film becomes a feature. The interactions of
# users and films are a matrix of low rank. No parameters have to be tuned.

# %%
import numpy as np
import pandas as pd

from dyad import FactorizationRegressor

random = np.random.default_rng(0)
users, films, count = 300, 200, 30_000
factors = random.normal(size=(users, 2)), random.normal(size=(films, 2))
user, film = random.integers(users, size=count), random.integers(films, size=count)
stars = 3 + 0.8 * (factors[0][user] * factors[1][film]).sum(axis=1) + 0.5 * random.normal(size=count)
ratings = pd.DataFrame({"user": [f"user {i}" for i in user], "film": [f"film {j}" for j in film]})
stars = np.clip(np.round(stars), 1, 5)

# %% [markdown]
# The last 5,000 rows are test rows. The range of the ratings is estimated from the data, and predictions are clipped to it.

# %%
model = FactorizationRegressor(rank=4).fit(ratings[:-5000], stars[:-5000])
X_test, y_test = ratings[-5000:], stars[-5000:]
values, deviations = model.predict(X_test, return_std=True)
rmse = np.sqrt(np.mean((values - y_test) ** 2))
print(f"rmse {rmse:.3f}; of the best constant: {y_test.std():.3f}")
print(f"share of targets within one standard deviation: {np.mean(np.abs(values - y_test) < deviations):.0%}")
assert rmse < 0.75 * y_test.std()

# %% [markdown]
# A film without ratings contributes 0, so that the prediction depends on the user only.

# %%
new = pd.DataFrame({"user": ["user 1"], "film": ["new film"]})
print(f"new film for user 1: {model.predict(new)[0]:.2f}")

# %%
print(model.interactions(top=5).round(2).to_string(index=False))

# %% [markdown]
# Share of the test rows in the prediction intervals of each nominal probability. The curve of a calibrated model is the diagonal. Ratings are
# rounded and bounded, so that their distribution is not normal.

# %%
from dyad import plot_calibration

plot_calibration(model, X_test, y_test)
