# %% [markdown]
# # Inductive matrix completion: rows that were never observed
#
# Genes and diseases have features; a few pairs were measured. The matrix between the two sorts of features has low rank, and
# once it is known, every pair can be predicted, those of new genes among them.

# %%
import numpy as np

from dyad import InductiveMatrixCompletion

random = np.random.default_rng(0)
genes, diseases = random.normal(size=(400, 12)), random.normal(size=(100, 8))
between = random.normal(size=(12, 2)) @ random.normal(size=(2, 8))
links = genes @ between @ diseases.T
seen_genes, seen = 300, 2000
i, j = random.integers(seen_genes, size=seen), random.integers(100, size=seen)

# %%
model = InductiveMatrixCompletion(rank=2).fit(genes, diseases, i, j, links[i, j] + 0.1 * random.normal(size=seen))
predicted = model.predict(genes, diseases)
new = slice(seen_genes, None)
error = np.sqrt(np.mean((predicted[new] - links[new]) ** 2))
print(f"{seen} of {links.size} entries observed, with noise 0.1")
print(f"rmse on genes that were never observed: {error:.3f} (their spread is {links[new].std():.2f})")
assert error < 0.1
