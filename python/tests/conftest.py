import numpy as np
import pytest


def make_rows(count, seed=0, dim=5, noise=0.3):
    """Return rows and targets with a linear term, a pair and a square."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(count, dim))
    y = 3 + X[:, 0] - 2 * X[:, 1] * X[:, 2] + X[:, 3] ** 2 + noise * random.normal(size=count)
    return X, y


def make_ratings(count, seed=0, users=60, films=40):
    """Return sparse rows with two indicators each, a user and a film, and ratings from 1 to 5."""
    import scipy.sparse as sp

    random = np.random.default_rng(seed)
    factors = np.random.default_rng(7).normal(size=(users, 2)), np.random.default_rng(8).normal(size=(films, 2))
    user, film = random.integers(users, size=count), random.integers(films, size=count)
    y = 3 + (factors[0][user] * factors[1][film]).sum(axis=1) + 0.3 * random.normal(size=count)
    columns = np.column_stack([user, users + film]).ravel()
    X = sp.csr_matrix((np.ones(2 * count), columns, np.arange(0, 2 * count + 1, 2)), shape=(count, users + films))
    return X, np.clip(np.round(y), 1, 5)


@pytest.fixture
def rows():
    return make_rows(300)
