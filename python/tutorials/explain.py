# %% [markdown]
# # Terms of a prediction
#
# A prediction is a sum of functions of single columns and of pairs of columns. `explain` returns these terms for each row.

# %%
import matplotlib

matplotlib.use("Agg")

import numpy as np
from sklearn.datasets import load_diabetes

import dyad

data = load_diabetes(as_frame=True, scaled=False)
X, y = data.data, data.target
model = dyad.FactorizationRegressor().fit(X[:400], y[:400])

# %% [markdown]
# The terms of one patient, from the largest to the smallest. Their sum is the prediction.

# %%
patient = X.iloc[[400]]
terms = model.explain(patient, top=6).iloc[0]
print(terms.reindex(terms.abs().sort_values(ascending=False).index).round(1).to_string())
print(f"sum {terms.sum():.4f}, prediction {model.predict(patient)[0]:.4f}")
assert np.isclose(terms.sum(), model.predict(patient)[0], rtol=0, atol=1e-9)

# %% [markdown]
# More rows would decrease the loss if the curve of the cross-validation still falls at its end.

# %%
axes = dyad.plot_learning_curve(dyad.FactorizationRegressor(rank=2, solver="kalman"), X, y, sizes=[0.3, 1.0], cv=3)
print("rmse by cross-validation:", np.round(axes.lines[1].get_ydata(), 1))
dyad.plot_calibration(model, X[400:], y[400:])
