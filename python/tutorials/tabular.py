# %% [markdown]
# # A numeric table: squares and pairs of all features
#
# The data are the progression of diabetes and ten measurements of 442 patients, from scikit-learn. The model contains all squares and pairs
# of features. The matrix of the pairs has low rank, so that 442 rows are sufficient. `fit` selects the strength of the ridge by
# cross-validation.

# %%
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import cross_val_score

from dyad import FactorizationRegressor

data = load_diabetes(as_frame=True)
X, y = data.data, data.target

# %%
second_order = cross_val_score(FactorizationRegressor(rank=4), X, y, cv=5).mean()
linear = cross_val_score(RidgeCV(), X, y, cv=5).mean()
print(f"r2 by cross-validation: {second_order:.3f}; of a linear model: {linear:.3f}")
assert second_order > linear - 0.05

# %% [markdown]
# The strongest interactions, in the units of the table.

# %%
model = FactorizationRegressor(rank=4).fit(X, y)
print(model.interactions(top=5).round(1).to_string(index=False))
print("eigenvalues of the interactions:", np.round(model.parameters()["spectrum"], 3))

# %% [markdown]
# Without `rank`, `fit` uses smooth functions of columns and pairs instead. The bands are two standard errors.

# %%
FactorizationRegressor().fit(X, y).plot_effects(top=6)
