# %% [markdown]
# # Phase retrieval: a signal from the squares of its projections
#
# A detector measures (a'x)², without the sign of a'x. About twice as many measurements as unknowns are sufficient to recover the signal
# up to its sign. With noise, the error decreases with the number of measurements.

# %%
import numpy as np

from dyad import PhaseRetrieval

random = np.random.default_rng(0)
signal = np.sin(np.linspace(0, 6, 60)) + 0.5 * random.normal(size=60)
for count in (90, 120, 180):
    A = random.normal(size=(count, 60))
    estimate = PhaseRetrieval().fit(A, (A @ signal) ** 2).signal_
    error = np.linalg.norm(PhaseRetrieval.align(estimate, signal) - signal) / np.linalg.norm(signal)
    print(f"{count} measurements, 60 unknowns: relative error {error:.1e}")
assert error < 1e-8

# %%
for count in (400, 800, 3200):
    A = random.normal(size=(count, 60))
    noisy = (A @ signal) ** 2 + 0.5 * random.normal(size=count)
    estimate = PhaseRetrieval().fit(A, noisy).signal_
    print(f"{count} noisy measurements: error {np.linalg.norm(PhaseRetrieval.align(estimate, signal) - signal):.3f}")

# %% [markdown]
# The signal, and its estimate from the last measurements.

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(6, 3))
axes.plot(signal, label="signal")
axes.plot(PhaseRetrieval.align(estimate, signal), "--", label=f"estimate from {count} noisy measurements")
axes.set(xlabel="entry")
axes.legend()
