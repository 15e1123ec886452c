"""Saves and loads models while calls of the system fail: LD_PRELOAD=libfailing_calls.so failing_saves.py FOLDER MOST STEP CALL...

Each trial is a child process in which CALL fails from its n-th time on, n = 1, 1 + STEP, ... MOST. After a failed save the file holds
the old model, after another the new one, complete. A failed load raises an exception. No trial may end by a signal, with one
exception: nanobind aborts if there is no memory to register a new object, which only loading makes.
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
    """Old and new ones of the same class: one model, a container, and a learner."""
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 3))
    for make in (
        lambda rank: FactorizationRegressor(rank=rank, solver="kalman", n_threads=1).fit(X, X[:, 0]),
        lambda rank: FactorizationClassifier(rank=rank, solver="kalman", n_threads=1).fit(X, np.arange(40) % 3),
        lambda rank: Learner(rank=rank).learn_one({"a": 1.0}, 2.0),
    ):
        yield make(1), make(2)


def saved_bytes(estimator, path):
    estimator.save(path)
    with open(path, "rb") as file:
        return file.read()


def in_child(work, call, at, may_abort=False):
    """What becomes of the work in a child with failing calls: "done", "failed" or "aborted"."""
    child = os.fork()
    if child == 0:
        status = 0
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        signal.alarm(60)
        error = errno.ENOMEM if call in ("malloc", "mmap") else errno.EIO
        try:
            FAILING_CALLS.dyad_fail_call(call.encode(), ctypes.c_long(at), ctypes.c_long(2**62), error)
            work()
        except Exception:  # noqa: BLE001
            status = 1
        os._exit(status)
    _, ended = os.waitpid(child, 0)
    if os.WIFEXITED(ended) and os.WEXITSTATUS(ended) in (0, 1):
        return "failed" if os.WEXITSTATUS(ended) else "done"
    if may_abort and os.WIFSIGNALED(ended) and os.WTERMSIG(ended) == signal.SIGABRT:
        return "aborted"
    raise AssertionError(f"{call} {at}: the process ended with status {ended}")


def check(folder, most, step, calls):
    path = os.path.join(folder, "model")
    for old, new in estimators():
        before, after = saved_bytes(old, path), saved_bytes(new, path)
        for call in calls:
            for at in range(1, most + 1, step):
                with open(path, "wb") as file:
                    file.write(before)
                ended = in_child(lambda: new.save(path), call, at)
                with open(path, "rb") as file:
                    found = file.read()
                if found != after and (found != before or ended == "done"):
                    raise AssertionError(f"{call} {at}: save {ended}, and the file is neither the old nor the new one")
                loaded = in_child(lambda: load(path), call, at, may_abort=call == "malloc")
                print(f"{type(new).__name__}, {call} {at}: save {ended}, load {loaded}")
                if ended == loaded == "done":
                    break  # there are fewer calls
    left = os.listdir(folder)
    assert left == ["model"], f"files are left behind: {left}"


if __name__ == "__main__":
    check(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
