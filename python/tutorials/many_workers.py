# %% [markdown]
# # Distributed training with several workers
#
# Each worker computes statistics of its rows, which are sums. The driver adds the statistics of all workers and updates the model. The size
# of the statistics is proportional to the size of the model and does not depend on the number of rows. The result equals the model of a
# single process. This example uses a pool of processes; any engine that can send objects to workers and back can be used.

# %%
import multiprocessing

import numpy as np

from dyad import FactorizationRegressor

random = np.random.default_rng(0)
X = random.normal(size=(20_000, 6))
y = 3 + X[:, 0] - 2 * X[:, 1] * X[:, 2] + X[:, 3] ** 2 + 0.3 * random.normal(size=20_000)
partitions = list(zip(np.array_split(X, 4), np.array_split(y, 4)))

# %% [markdown]
# The rows of the first call determine columns and scales. In the iterations that follow, every second one proposes a step, and the
# next one evaluates its length.

# %%
model = FactorizationRegressor(rank=3, solver="moment", n_jobs=1).partial_fit(X[:500], y[:500])
single = FactorizationRegressor(rank=3, solver="moment", n_jobs=1).partial_fit(X[:500], y[:500])
with multiprocessing.get_context("fork").Pool(2) as pool:
    for _ in range(12):
        statistics = pool.starmap(model.partial_statistics, partitions)
        model.apply_statistics(sum(statistics))
        single.apply_statistics(single.partial_statistics(X, y))

print(f"{statistics[0]}, rmse {model.summary_['rmse']:.4f} after {model.summary_['steps_taken']} steps")
difference = np.abs(model.predict(X) - single.predict(X)).max()
print("equals the model of a single process:", bool(difference < 1e-9))
assert difference < 1e-9

# %% [markdown]
# Prediction and target for the first 500 rows.

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(4, 3.4))
axes.scatter(model.predict(X[:500]), y[:500], s=4)
axes.set(xlabel="prediction", ylabel="target")
