"""dyad.stream: blocks of files and Arrow batches."""

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

import dyad
from conftest import make_rows, make_ratings
from dyad import FactorizationRegressor
from test_estimators import table


def test_stream_preserves_tables(tmp_path):
    X, y = table(1000)
    X.assign(price=y).to_csv(tmp_path / "rows.csv", index=False)
    blocks = list(dyad.stream(tmp_path / "rows.csv", target="price", rows=300))
    assert [len(targets) for _, targets in blocks] == [300, 300, 300, 100]
    read = pd.concat([block.astype({"color": str}) for block, _ in blocks], ignore_index=True)
    pd.testing.assert_frame_equal(read, X.astype({"color": str}), check_dtype=False, rtol=1e-15)
    np.testing.assert_allclose(np.concatenate([targets for _, targets in blocks]), y, rtol=1e-15)


def test_stream_can_be_iterated_repeatedly(tmp_path):
    X, y = table(6000)
    with gzip.open(tmp_path / "rows.csv.gz", "wt") as file:
        X.assign(price=y).to_csv(file, index=False)
    rows = dyad.stream(tmp_path / "rows.csv.gz", target="price", rows=2000)
    model = FactorizationRegressor(rank=3)
    for block, targets in rows:
        model.partial_fit(block, targets)
    losses = [np.mean((model.predict(block) - targets) ** 2) for block, targets in rows]
    assert len(losses) == 3 and max(losses) < 0.02  # the variance of the noise is 0.01


def test_stream_preserves_sparse_rows_and_arrays(tmp_path):
    X, y = make_ratings(500)
    dump_svmlight_file(X, y, str(tmp_path / "rows.svm"), zero_based=True)
    blocks = list(dyad.stream(tmp_path / "rows.svm", rows=200, n_features=X.shape[1]))
    assert (sp.vstack([block for block, _ in blocks]) != X).nnz == 0
    with pytest.raises(ValueError, match="n_features"):
        list(dyad.stream(tmp_path / "rows.svm", n_features=10))
    X, y = make_rows(70)
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", y)
    blocks = list(dyad.stream([tmp_path / "x.npy"], target_files=tmp_path / "y.npy", rows=50))
    np.testing.assert_array_equal(np.vstack([block for block, _ in blocks]), X)
    np.testing.assert_array_equal(np.concatenate([targets for _, targets in blocks]), y)


def arrow_table(count):
    X, y = table(count)
    return pa.Table.from_pandas(X.assign(price=y), preserve_index=False)


def sources(tmp_path):
    rows = arrow_table(900)
    pyarrow.parquet.write_table(rows, tmp_path / "rows.parquet")
    return {
        "parquet": tmp_path / "rows.parquet",
        "reader": pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=200)),
        "table": rows,
        "frame": rows.to_pandas(),
        "batches": iter(rows.to_batches(max_chunksize=300)),
    }


@pytest.mark.parametrize("kind", ["parquet", "reader", "table", "frame", "batches"])
def test_stream_reads_arrow_and_parquet(tmp_path, kind):
    blocks = list(dyad.stream(sources(tmp_path)[kind], target="price", ignore=["partial"], rows=400))
    assert sum(len(targets) for _, targets in blocks) == 900
    assert blocks[0][0].schema.names == ["color", "size"]
    model = FactorizationRegressor(rank=2)
    for block, targets in blocks:
        model.partial_fit(block, targets)
    assert model.predict(blocks[0][0]).shape == blocks[0][1].shape


def test_invalid_input_raises(tmp_path):
    (tmp_path / "rows.csv").write_text("x,y\n1,2\n3,4\n")
    (tmp_path / "word.csv").write_text("x,y\n1,2\n3,4\n5,6\nseven,8\n")
    with pytest.raises(ValueError, match="target.*'z'"):
        list(dyad.stream(tmp_path / "rows.csv", target="z"))
    with pytest.raises(ValueError, match="target"):
        list(dyad.stream(tmp_path / "rows.csv"))
    with pytest.raises(dyad.DataError, match="seven"):
        list(dyad.stream(tmp_path / "word.csv", target="y", rows=2))
    (tmp_path / "rows.txt").write_text("x,y\n1,2\n")
    with pytest.raises(ValueError, match="rows.txt"):
        dyad.stream(tmp_path / "rows.txt", target="y")
    with pytest.raises(ValueError, match="rows"):
        dyad.stream(tmp_path / "rows.csv", target="y", rows=0)
    with pytest.raises(ValueError, match="files.*int"):
        dyad.stream(3, target="y")
    with pytest.raises(FileNotFoundError, match="rows.csv"):
        list(dyad.stream(tmp_path / "missing" / "rows.csv", target="y"))
