# %% [markdown]
# # Sensors: several classes from a stream of raw numbers
#
# A machine sends temperature, pressure and speed in their own units. `Learner` scales them along the stream, adds classes when they occur for
# the first time, and predicts each row before it learns it.

# %%
import pathlib
import tempfile

import numpy as np

import dyad

random = np.random.default_rng(0)


def measure(step):
    temperature, pressure, speed = random.normal(350, 20), random.normal(101_325, 900), random.normal(25, 2)
    heat, load = (temperature - 350) / 20, (pressure - 101_325) / 900 * (speed - 25) / 2
    state = "overheated" if heat > 1 else "overloaded" if load > 1 and step > 500 else "normal"
    return {"temperature": temperature, "pressure": pressure, "speed": speed, "line": f"line {random.integers(3)}"}, state


# %%
learner = dyad.Learner("classification", rank=2)
losses = []
for step in range(6000):
    row, state = measure(step)
    losses.append(-np.log(max(1e-6, learner.predict_proba_one(row).get(state, 0))))
    learner.learn_one(row, state)
print(learner)
print(f"classes: {learner.classes}; log-loss of the last 2,000 rows: {np.mean(losses[-2000:]):.3f}")
assert np.mean(losses[-2000:]) < 0.35

# %% [markdown]
# A saved learner continues with the same state.

# %%
path = pathlib.Path(tempfile.mkdtemp()) / "learner.dyad"
learner.save(path)
restored = dyad.load(path)
row, _ = measure(6000)
print({name: round(probability, 3) for name, probability in restored.predict_proba_one(row).items()})
assert restored.predict_proba_one(row) == learner.predict_proba_one(row)
