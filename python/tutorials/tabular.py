# %% [markdown]
# # A table of numbers: squares and pairs without choosing them
#
# Diabetes progression from ten measurements (scikit-learn ships it). The model is a second-order one whose pairs share a few
# factors, so 442 rows are enough; the strength of the ridge is chosen by cross-validation inside `fit`.

# %%
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import cross_val_score

from dyad import FactorizationRegressor

data = load_diabetes(as_frame=True)
X, y = data.data, data.target

# %%
ours = cross_val_score(FactorizationRegressor(rank=4), X, y, cv=5).mean()
linear = cross_val_score(RidgeCV(), X, y, cv=5).mean()
print(f"r2 by cross-validation: {ours:.3f}, a linear model {linear:.3f}")
assert ours > linear - 0.05

# %% [markdown]
# What was learned, by name and in the units of the table.

# %%
model = FactorizationRegressor(rank=4).fit(X, y)
print(model.interactions(top=5).round(1).to_string(index=False))
print("strengths of the factors:", np.round(model.parameters()["spectrum"], 3))
