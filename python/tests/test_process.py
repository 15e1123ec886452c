"""Effects on the process that imports dyad: threads of BLAS libraries, signals, and limits on memory."""

import os
import signal
import threading
import time

import numpy as np
import pytest
import threadpoolctl

import dyad
from conftest import make_rows


def test_fit_keeps_blas_thread_counts():
    X, y = make_rows(500)
    model = dyad.FactorizationRegressor(rank=2)
    with threadpoolctl.threadpool_limits(limits=3, user_api="blas"):
        model.fit(X, y).predict(X)
        threads = {library["filepath"]: library["num_threads"] for library in threadpoolctl.threadpool_info()}
    libraries = [path for path in threads if "openblas" in path]
    assert libraries and all(threads[path] == 3 for path in libraries), threads


def test_stream_enforces_limits(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b,y\n1,2,3\n")
    assert len(list(dyad.stream(tmp_path / "rows.csv", target="y", max_columns=3, max_line_bytes=5))) == 1
    for limits in [{"max_columns": 2}, {"max_line_bytes": 4}]:
        with pytest.raises(dyad.DataError, match=next(iter(limits))):
            list(dyad.stream(tmp_path / "rows.csv", target="y", **limits))


def test_stream_rejects_npy_header_without_data(tmp_path):
    with open(tmp_path / "rows.npy", "wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (2**20, 2**18)}
        np.lib.format.write_array_header_1_0(file, header)
    with pytest.raises(dyad.DataError, match="rows.npy"):
        list(dyad.stream(tmp_path / "rows.npy", rows=2**20))


def test_stream_ends_on_keyboard_interrupt(tmp_path):
    os.mkfifo(tmp_path / "rows.csv")
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        list(dyad.stream(tmp_path / "rows.csv", target="y"))
    assert time.monotonic() - start < 10
