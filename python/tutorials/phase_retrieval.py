# %% [markdown]
# # Phase retrieval: a signal from the squares of its projections
#
# A detector sees (a'x)², never the sign of a'x. About twice as many measurements as unknowns give the signal back, up to its
# sign; with noise, the error falls as measurements are added.

# %%
import numpy as np

from dyad import PhaseRetrieval

random = np.random.default_rng(0)
signal = np.sin(np.linspace(0, 6, 60)) + 0.5 * random.normal(size=60)
for count in (90, 120, 180):
    A = random.normal(size=(count, 60))
    found = PhaseRetrieval().fit(A, (A @ signal) ** 2).signal_
    error = np.linalg.norm(PhaseRetrieval.align(found, signal) - signal) / np.linalg.norm(signal)
    print(f"{count} measurements of 60 unknowns: relative error {error:.1e}")
assert error < 1e-8

# %%
for count in (200, 800, 3200):
    A = random.normal(size=(count, 60))
    noisy = (A @ signal) ** 2 + 0.5 * random.normal(size=count)
    found = PhaseRetrieval().fit(A, noisy).signal_
    print(f"{count} noisy ones: {np.linalg.norm(PhaseRetrieval.align(found, signal) - signal):.3f}")
