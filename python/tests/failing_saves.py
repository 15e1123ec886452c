"""Saves and loads models while system calls fail: LD_PRELOAD=libfailing_calls.so failing_saves.py FOLDER MAXIMUM STEP CALL...

Each trial is a child process in which CALL fails from its n-th use on, n = 1, 1 + STEP, ..., MAXIMUM. After a failed save, the file
contains the complete old model; after a successful save, the complete new one. A failed load raises an exception. A trial must not
end by a signal, with one exception: nanobind aborts if it cannot allocate the memory for a new object, which only loading creates.
"""

import ctypes
import errno
import os
import signal
import sys

import numpy as np

from dyad import FactorizationClassifier, FactorizationRegressor, Learner, load

FAILING_CALLS = ctypes.CDLL(os.environ["LD_PRELOAD"])


def estimators():
    """Yield an old and a new estimator of the same class: with one model, with a container, and a learner."""
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 3))
    for make in (
        lambda rank: FactorizationRegressor(rank=rank, solver="kalman", n_jobs=1).fit(X, X[:, 0]),
        lambda rank: FactorizationClassifier(rank=rank, solver="kalman", n_jobs=1).fit(X, np.arange(40) % 3),
        lambda rank: Learner(rank=rank).learn_one({"a": 1.0}, 2.0),
    ):
        yield make(1), make(2)


def saved_bytes(estimator, path):
    estimator.save(path)
    with open(path, "rb") as file:
        return file.read()


def run_in_child(function, call, first, may_abort=False):
    """Run a function in a child process with failing calls. Return "done", "failed" or "aborted"."""
    child = os.fork()
    if child == 0:
        status = 0
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        signal.alarm(60)
        error = errno.ENOMEM if call in ("malloc", "mmap") else errno.EIO
        try:
            FAILING_CALLS.dyad_fail_call(call.encode(), ctypes.c_long(first), ctypes.c_long(2**62), error)
            function()
        except Exception:  # noqa: BLE001
            status = 1
        os._exit(status)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) in (0, 1):
        return "failed" if os.WEXITSTATUS(status) else "done"
    if may_abort and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGABRT:
        return "aborted"
    raise AssertionError(f"{call} {first}: the process ended with status {status}")


def check(folder, maximum, step, calls):
    path = os.path.join(folder, "model")
    for old, new in estimators():
        before, after = saved_bytes(old, path), saved_bytes(new, path)
        for call in calls:
            for first in range(1, maximum + 1, step):
                with open(path, "wb") as file:
                    file.write(before)
                saved = run_in_child(lambda: new.save(path), call, first)
                with open(path, "rb") as file:
                    found = file.read()
                if found != after and (found != before or saved == "done"):
                    raise AssertionError(f"{call} {first}: save {saved}, and the file is neither the old nor the new model")
                loaded = run_in_child(lambda: load(path), call, first, may_abort=call == "malloc")
                print(f"{type(new).__name__}, {call} {first}: save {saved}, load {loaded}")
                if saved == loaded == "done":
                    break  # the call is used fewer than `first` times
    remaining = os.listdir(folder)
    assert remaining == ["model"], f"temporary files remain: {remaining}"


if __name__ == "__main__":
    check(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
