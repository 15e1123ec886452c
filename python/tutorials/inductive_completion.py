# %% [markdown]
# # Inductive matrix completion: rows without observed entries
#
# Genes and diseases have features, and some pairs of a gene and a disease were measured. The value of a pair is x'Mz with the features x
# of the gene, the features z of the disease and a matrix M of low rank. With an estimate of M, all pairs can be predicted, including
# those of new genes.

# %%
import numpy as np

from dyad import InductiveMatrixCompletion

random = np.random.default_rng(0)
genes, diseases = random.normal(size=(400, 12)), random.normal(size=(100, 8))
M = random.normal(size=(12, 2)) @ random.normal(size=(2, 8))
links = genes @ M @ diseases.T
observed_genes, observed = 300, 2000
i, j = random.integers(observed_genes, size=observed), random.integers(100, size=observed)

# %%
model = InductiveMatrixCompletion(rank=2).fit(genes, diseases, i, j, links[i, j] + 0.1 * random.normal(size=observed))
predicted = model.predict(genes, diseases)
new = slice(observed_genes, None)
error = np.sqrt(np.mean((predicted[new] - links[new]) ** 2))
print(f"{observed} of {links.size} entries observed, noise 0.1")
print(f"rmse for new genes: {error:.3f} (standard deviation of their entries: {links[new].std():.2f})")
assert error < 0.1

# %% [markdown]
# Measured and predicted values of the pairs of new genes, and the true ones.

# %%
import matplotlib.pyplot as plt

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4))
table = np.full(links.shape, np.nan)
table[i, j] = links[i, j]
left.imshow(table, aspect="auto", interpolation="none")
left.set(title="observed entries", xlabel="disease", ylabel="gene")
right.scatter(links[new], predicted[new], s=2, alpha=0.3)
right.set(title="new genes", xlabel="true value", ylabel="prediction")

# %% [markdown]
# The observed entries can also be the stored entries of a sparse matrix, or the entries of an array that are not NaN. Every prediction has
# a standard deviation, which includes the noise. `matrix_` is the estimate of M.

# %%
partial = np.full(links.shape, np.nan)
partial[i, j] = links[i, j] + 0.1 * random.normal(size=observed)
model = InductiveMatrixCompletion(rank=2).fit(genes, diseases, matrix=partial)
predicted, deviations = model.predict(genes, diseases, return_std=True)
print(f"standard deviation of a new entry: {deviations[new].mean():.3f}; largest error of M: {np.abs(model.matrix_ - M).max():.3f}")
report = model.fit_report_
print(f"residual {report['residual']:.3f} with {report['degrees_of_freedom']} unknowns; R^2 {model.score(genes, diseases, matrix=partial):.4f}")
