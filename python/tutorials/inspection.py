# %% [markdown]
# # Inspection: which columns and pairs matter
#
# A fitted model has the attributes that scikit-learn users expect, and frames with names, standard errors and counts.

# %%
import numpy as np
import pandas as pd

from dyad import FactorizationRegressor

random = np.random.default_rng(0)
count = 3000
rows = pd.DataFrame(
    {
        "water": random.normal(5, 1, count),
        "age": random.exponential(3, count),
        "soil": random.choice(["clay", "sand", "peat"], count),
        "unused": random.normal(size=count),
    }
)
is_clay = (rows["soil"] == "clay").astype(float)
crop = 2 * rows["water"] + 1.5 * is_clay * (rows["water"] - 5) - 0.3 * rows["age"] + 0.2 * random.normal(size=count)

# %% [markdown]
# The linear terms of a low-rank model: the effect is the change of the prediction per standard deviation of a number, or by the presence of a category.

# %%
model = FactorizationRegressor(rank=2, solver="newton").fit(rows, crop)
print(model.weights().round(3).to_string(index=False))

# %% [markdown]
# The strongest pairs, and the factors that give all of them.

# %%
print(model.interactions(top=4).round(3).to_string(index=False))
print(model.factors().round(2).to_string(index=False))

# %% [markdown]
# The share of the variance that each column explains, for the low-rank model and for the default model of tables, which has functions
# instead of weights.

# %%
anova = FactorizationRegressor().fit(rows, crop)
for name, low_rank, smooth in zip(model.feature_names_in_, model.feature_importances_, anova.feature_importances_):
    print(f"{name}: {low_rank:.3f} (low rank), {smooth:.3f} (anova)")
assert model.feature_importances_[3] < 0.01
