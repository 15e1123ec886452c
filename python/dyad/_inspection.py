"""Terms, factors and functions of fitted models."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Optional, TypedDict, cast

import numpy as np
import numpy.typing as npt

from . import _core
from ._attributes import ALL_TERMS, AttributesMixin
from ._checks import check_integer

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]

class Effect(TypedDict):
    """Function of one or two columns of a model of the solver 'anova'."""

    columns: tuple[str, ...]
    positions: tuple[npt.NDArray[Any], ...]
    share: float
    values: Floats
    standard_errors: Floats


class Parameters(TypedDict):
    """Parameters of a low-rank model for scaled features and the scaled target."""

    intercept: float
    weights: Floats
    factors: Floats
    spectrum: Floats
    squares: Floats
    left_dim: int


class InspectionMixin(AttributesMixin):
    """Terms of `FactorizationRegressor` and `FactorizationClassifier`."""

    def weights(self, top: Optional[int] = None, class_index: Optional[int] = None) -> pd.DataFrame:
        """Return the linear terms of a low-rank model.

        Parameters
        ----------
        top : int, optional
            Number of terms. By default, all terms are returned.
        class_index : int, optional
            Index in ``classes_`` of the model. Required for classifiers of more than two classes.

        Returns
        -------
        pandas.DataFrame
            Terms by decreasing absolute effect, with the columns

            - ``feature`` : name, as in `get_feature_names_out`.
            - ``coefficient`` : coefficient of the feature in the units of the data, as in ``coef_``.
            - ``effect`` : change of the prediction (classes: of the log-odds) per standard deviation of a number, or by
              the presence of a category, at the means of the other numbers.
            - ``standard_error`` : posterior standard deviation of ``effect``. NaN if the solver has none ('moment' and
              'sampling').
            - ``count`` : number of training rows with the feature. NaN for a model that was loaded from a file.

        Raises
        ------
        AttributeError
            If the model is of the solver 'anova', which has `effects`.

        Examples
        --------
        >>> import numpy as np
        >>> from dyad import FactorizationRegressor
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> model = FactorizationRegressor(rank=1).fit(X, 3 * X[:, 1] - X[:, 2])
        >>> print(model.weights(top=2)[["feature", "coefficient", "count"]].round(2).to_string(index=False))
        feature  coefficient  count
              1          3.0  500.0
              2         -1.0  500.0
        """
        import pandas as pd

        check_integer("top", top, 0, optional=True)
        index = self._model_index(class_index)
        self._low_rank_predictor(index)
        features = _core.features(self._models[index])
        errors = np.full(len(features["names"]), math.nan)
        if features["posterior"] is not None:
            errors = features["target_scale"] * np.sqrt(features["posterior"]["weight_variances"])
        frame = pd.DataFrame(
            {
                "feature": features["names"],
                "coefficient": features["coefficients"],
                "effect": features["effects"],
                "standard_error": errors,
                "count": self._feature_counts(len(errors)),
            }
        )
        order = np.argsort(-np.abs(features["effects"]), kind="stable")
        return frame.iloc[order[:top]].reset_index(drop=True)

    def interactions(self, top: int = 20, class_index: Optional[int] = None) -> pd.DataFrame:
        """Return the strongest second-order terms.

        Parameters
        ----------
        top : int, default=20
            Number of terms.
        class_index : int, optional
            Index in ``classes_`` of the model. Required for classifiers of more than two classes.

        Returns
        -------
        pandas.DataFrame
            Terms by decreasing absolute effect, with the columns

            - ``left``, ``right`` : names of the features, equal for a square. Solver 'anova': names of the columns.
            - ``coefficient`` : coefficient of the product, in the units of the data. Solver 'anova': NaN.
            - ``effect`` : change of the prediction (classes: of the log-odds) per standard deviation of each number, or
              by the presence of each category. Solver 'anova': standard deviation of the function of the pair over the
              training rows.
            - ``standard_error`` : posterior standard deviation of ``effect``. Solver 'anova': root mean square of the
              posterior standard deviations of the values of the function. NaN if the solver has none ('moment' and
              'sampling'). The posterior of a low-rank model neglects covariances, so that the standard error of a product
              can exceed the correct one by a factor of up to sqrt(2 rank).
            - ``left_count``, ``right_count`` : numbers of training rows with the features. NaN for a model of the solver
              'anova', and if the model was loaded from a file.

        Notes
        -----
        The strongest pairs are found by branch and bound. The matrix M is not formed.

        Examples
        --------
        >>> import numpy as np
        >>> from dyad import FactorizationRegressor
        >>> X = np.random.default_rng(0).normal(size=(500, 4))
        >>> model = FactorizationRegressor(rank=2).fit(X, 3 * X[:, 1] * X[:, 2])
        >>> print(model.interactions(top=1)[["left", "right", "coefficient"]].round(2).to_string(index=False))
        left right  coefficient
           1     2          3.0
        """
        import pandas as pd

        check_integer("top", top, 0)
        index = self._model_index(class_index)
        predictor = self._predictors[index]
        if predictor.is_anova():
            pairs = [effect for effect in predictor.inspect(ALL_TERMS)["effects"] if len(effect["axes"]) == 2][: int(top)]
            rows = [
                (pair["axes"][0][0], pair["axes"][1][0], math.nan, pair["spread"], _root_mean_square(pair), math.nan, math.nan)
                for pair in pairs
            ]
        else:
            terms = predictor.inspect(int(top))["pairs"]
            features = _core.features(self._models[index])
            position = {name: j for j, name in enumerate(features["names"])}
            counts = self._feature_counts(len(features["names"]))
            rows = []
            for left, right, coefficient, effect in terms:
                i, j = position[left], position[right]
                rows.append((left, right, coefficient, effect, _pair_error(features, i, j), counts[i], counts[j]))
        names = ["left", "right", "coefficient", "effect", "standard_error", "left_count", "right_count"]
        return pd.DataFrame(rows, columns=names)

    def factors(self, class_index: Optional[int] = None) -> pd.DataFrame:
        """Return the factors of the interactions of a low-rank model.

        Parameters
        ----------
        class_index : int, optional
            Index in ``classes_`` of the model. Required for classifiers of more than two classes.

        Returns
        -------
        pandas.DataFrame
            One row per feature, with the columns ``feature``, ``count`` (number of training rows with the feature), and for
            each factor c = 1, 2, ... by decreasing absolute eigenvalue ``factor_c`` and ``standard_error_c``.

        Raises
        ------
        AttributeError
            If the model is of the solver 'anova', which has `effects`.

        Notes
        -----
        For scaled features, M = sum_c s_c F_c F_c' with the factors F_c = sqrt(abs(lambda_c)) U_c and the sign s_c of
        the eigenvalue lambda_c (``parameters()["spectrum"]``). Features with similar rows of factors interact similarly
        with all other features. The standard errors are those of the posterior in the basis of the eigenvectors, which is
        treated as known. They are NaN if the solver has none ('moment' and 'sampling').

        Examples
        --------
        >>> import numpy as np
        >>> from dyad import FactorizationRegressor
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> model = FactorizationRegressor(rank=2).fit(X, X[:, 0] * X[:, 1])
        >>> list(model.factors().columns)
        ['feature', 'count', 'factor_1', 'standard_error_1', 'factor_2', 'standard_error_2']
        """
        import pandas as pd

        index = self._model_index(class_index)
        parameters = self._low_rank_predictor(index).parameters()
        features = _core.features(self._models[index])
        spectrum = parameters["spectrum"]
        order = np.argsort(-np.abs(spectrum), kind="stable")
        factors = (parameters["factors"] * np.sqrt(np.abs(spectrum)))[:, order]
        errors = np.full(factors.shape, math.nan)
        posterior = features["posterior"]
        if posterior is not None:
            basis = np.linalg.lstsq(posterior["factors"], factors, rcond=None)[0]
            errors = np.sqrt(posterior["factor_variances"] @ basis**2)
        frame = {"feature": features["names"], "count": self._feature_counts(len(factors))}
        for c in range(factors.shape[1]):
            frame[f"factor_{c + 1}"] = factors[:, c]
            frame[f"standard_error_{c + 1}"] = errors[:, c]
        return pd.DataFrame(frame)

    def effects(self, top: int = 20, class_index: Optional[int] = None) -> list[Effect]:
        """Return the functions of columns and pairs of a model of the solver 'anova'.

        Parameters
        ----------
        top : int, default=20
            Number of functions, by decreasing share of the explained variance.
        class_index : int, optional
            Index in ``classes_`` of the model. Required for classifiers of more than two classes.

        Returns
        -------
        list of dict
            - ``columns`` : tuple of one or two names.
            - ``positions`` : tuple of one or two arrays, the knots of a numeric column or the levels of a categorical
              one; missing values are the level ``'missing'``.
            - ``share`` : float, share of the sum of the variances of all functions over the training rows.
            - ``values`` : ndarray, the function at the positions, in the units of the target or as log-odds.
            - ``standard_errors`` : ndarray, posterior standard deviations of ``values``.

        Raises
        ------
        AttributeError
            If the model is a low-rank model, which has `interactions` and `parameters`.

        Notes
        -----
        The functions are linear between the knots and constant beyond them. Their mean over the training rows is 0.

        Examples
        --------
        >>> import numpy as np
        >>> from dyad import FactorizationRegressor
        >>> X = np.random.default_rng(0).normal(size=(300, 2))
        >>> model = FactorizationRegressor().fit(X, np.sin(X[:, 1]))
        >>> effect = model.effects(top=1)[0]
        >>> effect["columns"], bool(effect["share"] > 0.99)
        (('1',), True)
        """
        check_integer("top", top, 0)
        predictor = self._predictors[self._model_index(class_index)]
        if not predictor.is_anova():
            raise AttributeError(
                "A low-rank model has no effects; use interactions() or parameters(), or fit with solver='anova'."
            )
        return [_describe_effect(effect) for effect in predictor.inspect(int(top))["effects"]]

    def noise_factors(self, top: int = 20) -> list[tuple[str, float, float]]:
        """Return the noise of categories and indicators of a regression model of the solver 'sampling'.

        The standard deviation of the noise of a row is a constant times the product of the factors of its features.

        Parameters
        ----------
        top : int, default=20
            Number of features, by decreasing ``|log(factor)|`` in standard errors.

        Returns
        -------
        list of (str, float, float)
            Name of the feature, factor and standard error of the factor.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from dyad import FactorizationRegressor
        >>> random = np.random.default_rng(0)
        >>> user = random.choice(["quiet", "noisy"], size=2000)
        >>> y = random.normal(size=2000) * np.where(user == "noisy", 2.0, 0.5)
        >>> X = pd.DataFrame({"user": user, "item": random.choice(list("abc"), size=2000)})
        >>> model = FactorizationRegressor(rank=1, solver="sampling", samples=20).fit(X, y)
        >>> factor = {name: factor for name, factor, error in model.noise_factors()}
        >>> factor["user=noisy"] > 2 * factor["user=quiet"]
        True
        """
        check_integer("top", top, 0)
        factors: list[tuple[str, float, float]] = self._predictors[self._model_index(None)].inspect(int(top))["noise_factors"]
        return factors

    def parameters(self, class_index: Optional[int] = None) -> Parameters:
        """Return the parameters of the model for scaled features and the scaled target.

        Parameters
        ----------
        class_index : int, optional
            Index in ``classes_`` of the model. Required for classifiers of more than two classes.

        Returns
        -------
        dict
            - ``intercept`` : float, b.
            - ``weights`` : ndarray of shape (dim,), w.
            - ``factors`` : ndarray of shape (dim, rank), U with orthonormal columns.
            - ``spectrum`` : ndarray of shape (rank,), lambda.
            - ``squares`` : ndarray of shape (dim,), or empty if the diagonal is 'tied'.
            - ``left_dim`` : int, 0 for symmetric models.

        Notes
        -----
        With the scaled features z, the scaled target (or the log-odds of the positive class) is
        b + w'z + z' U diag(lambda) U' z + sum_j squares_j z_j^2. Categories are features of the value 0 or 1, so that
        ``dim`` can exceed ``n_features_in_``.

        Examples
        --------
        >>> import numpy as np
        >>> from dyad import FactorizationRegressor
        >>> X = np.random.default_rng(0).normal(size=(300, 4))
        >>> parameters = FactorizationRegressor(rank=2).fit(X, X[:, 0] * X[:, 1]).parameters()
        >>> parameters["factors"].shape, parameters["spectrum"].shape
        ((4, 2), (2,))
        """
        return cast(Parameters, self._low_rank_predictor(self._model_index(class_index)).parameters())


def _root_mean_square(effect: dict[str, Any]) -> float:
    return float(np.sqrt(np.mean(np.square(effect["standard_errors"]))))


def _pair_error(features: dict[str, Any], i: int, j: int) -> float:
    """Return the posterior standard deviation of the effect of a product or a square."""
    posterior = features["posterior"]
    if posterior is None:
        return math.nan
    factors, variances = posterior["factors"], posterior["factor_variances"]
    if i != j:
        # Products of independent factors a and b: var(ab) = a^2 var(b) + b^2 var(a) + var(a) var(b).
        products = factors[i] ** 2 * variances[j] + factors[j] ** 2 * variances[i] + variances[i] * variances[j]
        variance = 4 * products.sum()
    elif posterior["diagonal"] == "free":
        variance = posterior["square_variances"][i]
    else:
        variance = (4 * factors[i] ** 2 * variances[i] + 2 * variances[i] ** 2).sum()
    return float(abs(features["target_scale"]) * np.sqrt(variance))


def _describe_effect(effect: dict[str, Any]) -> Effect:
    """Return one entry of `BaseFactorization.effects`."""
    positions = []
    for _, knots, labels in effect["axes"]:
        has_numbers = not all(math.isnan(knot) for knot in knots)
        mixed = [label if math.isnan(knot) else knot for knot, label in zip(knots, labels)]
        is_numeric = has_numbers and not any(math.isnan(knot) for knot in knots)
        positions.append(np.array(mixed, dtype=np.float64 if is_numeric else object))
    shape = tuple(len(axis) for axis in positions)
    return {
        "columns": tuple(axis[0] for axis in effect["axes"]),
        "positions": tuple(positions),
        "share": effect["share"],
        "values": np.reshape(effect["values"], shape),
        "standard_errors": np.reshape(effect["standard_errors"], shape),
    }
