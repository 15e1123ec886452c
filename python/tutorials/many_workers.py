# %% [markdown]
# # Rows in many places: the same model as from one
#
# Each worker sums up what its rows say about the model; the sums add, and one step is made of them. A worker's sums are of the
# size of the model, however many rows it has. Any engine that can send an object to its workers and add up what comes back can
# do this; here it is Python's own pool of processes.

# %%
import multiprocessing

import numpy as np

from dyad import FactorizationRegressor

random = np.random.default_rng(0)
X = random.normal(size=(20_000, 6))
y = 3 + X[:, 0] - 2 * X[:, 1] * X[:, 2] + X[:, 3] ** 2 + 0.3 * random.normal(size=20_000)
parts = list(zip(np.array_split(X, 4), np.array_split(y, 4)))

# %% [markdown]
# The first rows decide about columns and scales. Then come the rounds: half of them propose a step, the others try it out.

# %%
model = FactorizationRegressor(rank=3, solver="moment", n_threads=1).partial_fit(X[:500], y[:500])
alone = FactorizationRegressor(rank=3, solver="moment", n_threads=1).partial_fit(X[:500], y[:500])
with multiprocessing.get_context("fork").Pool(2) as pool:
    for _ in range(12):
        statistics = pool.starmap(model.partial_statistics, parts)
        model.apply_statistics(sum(statistics))
        alone.apply_statistics(alone.partial_statistics(X, y))

print(f"{statistics[0]}, rmse {model.summary_['rmse']:.4f} after {model.summary_['steps_taken']} steps")
difference = np.abs(model.predict(X) - alone.predict(X)).max()
print("the same model as from one process:", bool(difference < 1e-9))
assert difference < 1e-9
