"""Training state in a model file: access to the tensors ``state.*`` by name."""

from __future__ import annotations

import dataclasses

import numpy as np

from .encoding import Encoder
from .hierarchical import FeatureNoise, HierarchicalFilter, HierarchicalPrior, LogNoiseTracker, feature_signs
from .kalman import Filter, NoiseTracker, Prior
from .model_file import ModelFile
from .moments import FeatureMoments, MomentSums
from .prediction import Model, SignedFactors

_FILTERS = "state.kalman.race."
_FILTER = _FILTERS + "0."  # the best candidate, which predicts
_MOMENT = "state.moment."
_NEVER = 1e9  # row number beyond the rows of all tests
_MOMENTS_OF_FEATURES = ("automatic", "gaussian", "estimated")


def read_filter(file: ModelFile) -> Filter:
    """Return the filter of a model that was trained by a Kalman pass or a multi-pass solver."""
    encoder = Encoder(file)
    dim, rank = encoder.dim, int(file.metadata["training.rank"])

    def number(name: str) -> float:
        return file.number(_FILTER + name)

    places = file.tensors[_FILTER + "feature_places"].astype(int)
    # Numbers per feature: factors, their variances, weight, its variance, square, its variance, scale.
    features = np.zeros((dim, 2 * rank + 5))
    features[places] = file.tensors[_FILTER + "features"].reshape(len(places), 2 * rank + 5)
    shape = {
        "signs": file.tensors[_FILTER + "signs"][:rank].copy(),
        "diagonal": file.metadata["training.diagonal"],
        "left_dim": encoder.left_dim,
        "square_centre": number("square_centre"),
    }
    A, A_variances, linear = features[:, :rank], features[:, rank : 2 * rank], features[:, 2 * rank :]
    means = SignedFactors(number("intercept"), linear[:, 0].copy(), linear[:, 2].copy(), A.copy(), **shape)
    variances = np.concatenate([[number("intercept_variance")], linear[:, 1], linear[:, 3], A_variances.ravel()])
    half_life = float(file.metadata["training.half_life"])
    is_single = file.tensors["weights"].dtype == np.float32
    low, high = encoder.scaled_range()
    learns_prior = _FILTER + "learns_prior" in file.tensors and number("learns_prior") == 1
    noise_type = LogNoiseTracker if learns_prior else NoiseTracker
    filter = Filter(
        means=means,
        variances=variances,
        prior=Prior(*(number("prior." + name) for name in ("intercept", "weights", "squares", "factors"))),
        scales=linear[:, 4].copy(),
        noise=noise_type(*(number("noise." + field.name) for field in dataclasses.fields(noise_type))),
        rows=number("rows"),
        innovation_ratio=number("surprise"),
        recent_squares=number("recent_squares"),
        last_seen=file.tensors[_FILTER + "last_seen"].copy() if half_life else np.zeros(dim),
        is_class=encoder.target["task"] == "classification",
        low=float(np.float32(low)) if is_single else low,
        high=float(np.float32(high)) if is_single else high,
        half_life=half_life,
        amplitude=file.features["kind"] == "phase",
        epsilon=float(np.finfo(np.float32 if is_single else float).eps),
    )
    return _read_prior(file, filter) if learns_prior else filter


def _read_prior(file: ModelFile, filter: Filter) -> HierarchicalFilter:
    """Return the filter with the hierarchical prior of the file."""
    dim, rank = filter.means.A.shape
    tau = file.tensors[_FILTER + "learned_prior.variances"].reshape(-1, rank + 2).copy()
    # Mean and variance of each factor, of the weight, and of the square (free diagonal).
    stored = file.tensors[_FILTER + "group_means"].reshape(len(tau), -1, 2)
    means = np.zeros((2, *tau.shape))
    means[:, :, : stored.shape[1]] = np.moveaxis(stored, 2, 0)
    multipliers = file.tensors[_FILTER + "feature_noise"].reshape(dim, 2).astype(float)
    numbers = [field.name for field in dataclasses.fields(FeatureNoise) if field.name not in ("means", "variances")]
    feature_noise = FeatureNoise(
        *(file.number(f"{_FILTER}feature_noise.{name}") for name in numbers), multipliers[:, 0].copy(), multipliers[:, 1].copy()
    )
    return HierarchicalFilter(
        **vars(filter),
        feature_noise=feature_noise,
        learned=HierarchicalPrior(file.tensors[_FILTER + "learned_prior.initial"].copy(), tau),
        groups=file.tensors[_FILTER + "feature_groups"].astype(int),
        group_means=means[0],
        group_variances=means[1],
        is_absorbed=bool(file.number(_FILTER + "one_feature_per_row")),
        next_update=file.number(_FILTER + "next_prior_update"),
        signs=feature_signs(int(file.metadata["training.seed"]), dim, filter.means.left_dim, rank),
        relative_deviation=file.number(_FILTER + "relative_prior_mean"),
    )


def _write_prior(file: ModelFile, filter: HierarchicalFilter) -> None:
    """Replace the hierarchical prior of the file."""
    stored = file.tensors[_FILTER + "group_means"].reshape(len(filter.learned.tau), -1, 2)
    means = np.stack([filter.group_means, filter.group_variances], axis=2)[:, : stored.shape[1]]
    file.tensors[_FILTER + "group_means"] = means.ravel().astype(float)
    file.tensors[_FILTER + "learned_prior.variances"] = filter.learned.tau.ravel()
    file.set_number(_FILTER + "next_prior_update", filter.next_update)


def write_filter(file: ModelFile, filter: Filter) -> None:
    """Replace all filters of the file by one, so that training does not compare candidates."""
    others = [name for name in file.tensors if name.startswith(_FILTERS) and not name.startswith(_FILTER)]
    for name in others:
        if name.removeprefix(_FILTERS)[0].isdigit():
            del file.tensors[name]
    file.set_number(_FILTERS + "contenders", 1)
    file.set_number("state.kalman.next_decision", _NEVER)
    file.set_number("state.kalman.next_turn", _NEVER)
    file.set_number("state.kalman.exact_rows", 0)
    file.set_number("state.kalman.searching", 0)
    means, dim = filter.means, len(filter.scales)
    rank = means.A.shape[1]
    # Features that have not occurred have the scale 0 and are not stored.
    places = np.flatnonzero(filter.scales > 0)
    intercept_variance, weights, squares, A = np.split(filter.variances, [1, 1 + dim, 1 + 2 * dim])
    linear = np.column_stack([means.weights, weights, means.squares, squares, filter.scales])
    features = np.hstack([means.A, A.reshape(dim, rank), linear])[places]
    file.tensors[_FILTER + "feature_places"] = places.astype(float)
    file.tensors[_FILTER + "features"] = features.ravel()
    file.set_number(_FILTER + "feature_count", len(places))
    signs = file.tensors[_FILTER + "signs"]
    signs[:rank] = means.signs
    if filter.half_life:
        file.tensors[_FILTER + "last_seen"] = filter.last_seen
    if isinstance(filter, HierarchicalFilter):
        _write_prior(file, filter)
    for name, value in (
        ("intercept", means.intercept),
        ("intercept_variance", intercept_variance.item()),
        ("rows", filter.rows),
        ("surprise", filter.innovation_ratio),
        ("recent_squares", filter.recent_squares),
        *((f"prior.{name}", getattr(filter.prior, name)) for name in ("intercept", "weights", "squares", "factors")),
        *((f"noise.{name}", value) for name, value in vars(filter.noise).items()),
    ):
        file.set_number(_FILTER + name, value)


def start_batch(
    file: ModelFile, factors: np.ndarray, model: dict[str, np.ndarray], features: FeatureMoments, moments: str
) -> None:
    """Start a batch of the moment solver with a model and the moments of earlier rows.

    ``model`` contains the arrays intercept, weights, spectrum and squares. ``moments`` is one of automatic, gaussian and
    estimated.
    """
    scan = _MOMENT + "one_scan."
    for name in [name for name in file.tensors if name.startswith((scan + "sums.", scan + "batch_features."))]:
        del file.tensors[name]
    file.set_number(scan + "inside_a_batch", 0)
    file.set_number(_MOMENT + "rows_in_batch", 0)
    file.tensors[scan + "model.factors"] = factors.ravel()
    for name, values in model.items():
        file.tensors[scan + "model." + name] = np.atleast_1d(values).astype(float)
    file.set_number(scan + "estimator.moments", _MOMENTS_OF_FEATURES.index(moments))
    file.set_number(scan + "estimator.features.weight", features.weight)
    file.set_number(scan + "estimator.features.squared_weights", features.squared_weights)
    file.tensors[scan + "estimator.features.sums"] = features.sums.T.ravel()


def read_sums(file: ModelFile) -> tuple[MomentSums, FeatureMoments]:
    """Return the sums of an open batch, and the power sums of its features. ``p2`` may be empty."""
    scan = _MOMENT + "one_scan."
    rank, sums = int(file.metadata["training.rank"]), scan + "sums."
    moments = file.tensors[sums + "moments"].reshape(-1, rank + 1)
    features = scan + "batch_features."
    return (
        MomentSums(
            weight=file.number(sums + "weight"),
            p0=file.number(sums + "p0"),
            residual_squares=file.number(sums + "residual_squares"),
            p1=moments[:, rank],
            p2=file.tensors[sums + "p2"],
            G=moments[:, :rank],
        ),
        FeatureMoments(
            weight=file.number(features + "weight"),
            squared_weights=file.number(features + "squared_weights"),
            sums=file.tensors[features + "sums"].reshape(4, -1).T,
        ),
    )


def read_proposed_model(file: ModelFile, left_dim: int) -> Model:
    """Return the model that the moment solver proposed after its last batch, before the line search."""
    return Model.of(file, left_dim, _MOMENT + "proposed.")
