"""The matrix of models: kind x layout x precision x solver x likelihood, and single runs of further options."""

import dataclasses
import json
import pathlib
import subprocess

from data import LIKELIHOODS, Files

USAGE_ERROR = 2  # the exit code of dyad for options that do not go together
SOLVERS = ("auto", "kalman", "moment", "newton", "variational")
PRECISIONS = ("double", "single")
RIGHT_COLUMNS = {"table": "city,zip", "ratings": "film", "matrix": "3-5", "sparse": "13-24"}
# Of the output of `recover`; times and texts are left out.
RECOVERY_FIELDS = ("rows", "row_reads", "error_w", "error_M", "error_squares", "error_b", "error_a", "tan_theta", "noise")


@dataclasses.dataclass
class Run:
    """One model: options of `train`, and further runs of `train --resume` if ``resumes``."""

    name: str
    files: Files
    options: list[str]
    threads: int = 1
    resumes: bool = False


def runs(files: dict[tuple[str, str], Files]) -> list[Run]:
    """All models to train. Combinations that dyad refuses are included: that they are refused is part of the result."""
    found = []

    def add(name: str, data: str, likelihood: str, *options: str, **settings) -> None:
        given = files[data, likelihood]
        # A range is declared for half of the data sets, and found in the first rows of the others.
        declared = ["--range", "1,5"] if likelihood == "range" and data in ("table", "sparse") else []
        if "moment" in options:
            declared = ["--batch", "150"]  # so that some steps are taken
        found.append(Run(name, given, [*given.options, *declared, *options], **settings))

    for data in ("table", "matrix", "sparse"):
        for likelihood in LIKELIHOODS:
            for solver in SOLVERS:
                for precision in PRECISIONS:
                    options = ["--solver", solver, "--precision", precision, "--rank", "3"]
                    for diagonal in ("tied", "zero", "free"):
                        name = f"gfm-{data}-{likelihood}-{diagonal}-{solver}-{precision}"
                        add(name, data, likelihood, "--diagonal", diagonal, *options)
                    name = f"bilinear-{data}-{likelihood}-{solver}-{precision}"
                    add(name, data, likelihood, "--kind", "bilinear", "--right", RIGHT_COLUMNS[data], *options)
    for kind in ("sensing", "phase"):
        for data in ("table", "matrix", "sparse"):
            for solver in SOLVERS:
                for precision in PRECISIONS:
                    options = ["--kind", kind, "--solver", solver, "--precision", precision]
                    rank = ["--rank", "2"] if kind == "sensing" else []
                    add(f"{kind}-{data}-{solver}-{precision}", f"{kind}-{data}", "number", *options, *rank)
    for likelihood in LIKELIHOODS:
        for solver in SOLVERS:
            for data in ("tsv", "ratings", "filled"):
                add(f"gfm-{data}-{likelihood}-{solver}", data, likelihood, "--solver", solver)
            right = ["--kind", "bilinear", "--right", RIGHT_COLUMNS["ratings"]]
            add(f"bilinear-ratings-{likelihood}-{solver}", "ratings", likelihood, *right, "--solver", solver)
    for data in ("table", "matrix", "sparse", "ratings"):
        for likelihood in LIKELIHOODS:
            name = f"option-{data}-{likelihood}-"
            add(name + "threads", data, likelihood, threads=2)
            add(name + "resume", data, likelihood, "--solver", "kalman", resumes=True)
            add(name + "resume-moment", data, likelihood, "--solver", "moment", resumes=True)
            add(name + "forget", data, likelihood, "--forget", "50", resumes=True)
            add(name + "one-pass", data, likelihood, "--memory", "0", "--seed", "7")
            add(name + "passes", data, likelihood, "--passes", "3")
            if data != "matrix":
                validation = next(path for path in files[data, likelihood].held_out if not path.startswith("-"))
                add(name + "validation", data, likelihood, "--validation", validation)
                add(name + "hash", data, likelihood, "--hash-bits", "6")
                add(name + "hash-moment", data, likelihood, "--hash-bits", "4", "--solver", "moment")
    return found


def train(dyad: str, run: Run, folder: pathlib.Path) -> str:
    """Train the model, and predict held-out rows with it. Return "ok", "refused", or how it failed."""
    model = folder / f"{run.name}.dyad"
    threads = ["--threads", str(run.threads), "--quiet"]
    commands = [["train", *run.files.training, *run.options]]
    if run.resumes:
        commands.append(["train", *run.files.held_out, "--resume"])
    predictions = folder / f"{run.name}.predictions.txt"
    deviations = [] if "moment" in run.options else ["--std"]
    commands.append(["predict", *run.files.held_out, "-o", str(predictions), *deviations])
    for command in commands:
        words = [dyad, *command, "-m", str(model), *threads]
        result = subprocess.run(words, capture_output=True, text=True)
        if result.returncode == USAGE_ERROR and command is commands[0]:
            return "refused"
        if result.returncode != 0:
            return f"failed with exit code {result.returncode}: {' '.join(words)}: {result.stderr.strip()}"
    return "ok"


def recoveries() -> dict[str, list[str]]:
    """Options of `recover`, by name: the solvers of planted problems, which train does not offer alone."""
    found = {}
    dimensions = {"gfm": "12", "sensing": "12", "phase": "12", "bilinear": "8x6"}
    for kind, dim in dimensions.items():
        options = [kind, "--dim", dim, *([] if kind == "phase" else ["--rank", "2"])]
        for solver in ("auto", "moment", "kalman", "newton"):
            found[f"recover-{kind}-{solver}"] = [*options, "--solver", solver, "--noise", "0.1", "--rows", "3000"]
        found[f"recover-{kind}-paper"] = [*options, "--update", "paper", "--rows", "6000"]
    for diagonal in ("zero", "free"):
        options = ["gfm", "--dim", "12", "--rank", "2", "--diagonal", diagonal, "--features", "skewed"]
        found[f"recover-gfm-{diagonal}"] = [*options, "--solver", "moment", "--rows", "6000", "--intercept", "1"]
    found["recover-gfm-theory"] = ["gfm", "--dim", "12", "--rank", "2", "--theory", "--rows", "4000"]
    return found


def recover(dyad: str, options: list[str], path: pathlib.Path) -> None:
    """Write the errors of a planted problem, at its end and along the way, as JSON."""
    words = [dyad, "recover", *options, "--threads", "1", "--json", "--quiet"]
    output = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)

    def numbers(fields: dict) -> dict:
        return {name: fields[name] for name in RECOVERY_FIELDS if name in fields}

    path.write_text(json.dumps({**numbers(output), "trace": [numbers(point) for point in output["trace"]]}, indent=1))
