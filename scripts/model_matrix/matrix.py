"""The matrix of models (kind x layout x precision x solver x likelihood) and runs with further options."""

import dataclasses
import json
import pathlib
import subprocess

from data import LIKELIHOODS, Files

USAGE_ERROR = 2  # exit code of dyad for incompatible options
SOLVERS = ("auto", "kalman", "moment", "newton", "variational")
PRECISIONS = ("double", "single")
RIGHT_COLUMNS = {"table": "city,zip", "ratings": "film", "matrix": "3-5", "sparse": "13-24"}
# Fields of the output of `recover` that are compared. Times and texts are excluded.
RECOVERY_FIELDS = ("rows", "row_reads", "error_w", "error_M", "error_squares", "error_b", "error_a", "tan_theta", "noise")


@dataclasses.dataclass
class Run:
    """One model: options of `train`, followed by `train --resume` on the held-out rows if ``resumes``."""

    name: str
    files: Files
    options: list[str]
    threads: int = 1
    resumes: bool = False


def runs(files: dict[tuple[str, str], Files]) -> list[Run]:
    """Return all models to train. Combinations that dyad rejects are included, so that the comparison covers the rejections."""
    result = []

    def add(name: str, data: str, likelihood: str, *options: str, **settings) -> None:
        source = files[data, likelihood]
        # The range is declared for two data sets, except with the moment solver. Otherwise dyad infers it from the first rows.
        further = ["--range", "1,5"] if likelihood == "range" and data in ("table", "sparse") else []
        if "moment" in options:
            further = ["--batch", "150"]  # several updates within the training rows
        result.append(Run(name, source, [*source.options, *further, *options], **settings))

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
    return result


def train(dyad: str, run: Run, folder: pathlib.Path) -> str:
    """Train the model and predict the held-out rows. Return "ok", "rejected", or a description of the failure."""
    model = folder / f"{run.name}.dyad"
    threads = ["--threads", str(run.threads), "--quiet"]
    commands = [["train", *run.files.training, *run.options]]
    if run.resumes:
        commands.append(["train", *run.files.held_out, "--resume"])
    predictions = folder / f"{run.name}.predictions.txt"
    deviations = [] if "moment" in run.options else ["--std"]
    commands.append(["predict", *run.files.held_out, "-o", str(predictions), *deviations])
    for command in commands:
        call = [dyad, *command, "-m", str(model), *threads]
        result = subprocess.run(call, capture_output=True, text=True)
        if result.returncode == USAGE_ERROR and command is commands[0]:
            return "rejected"
        if result.returncode != 0:
            return f"failed with exit code {result.returncode}: {' '.join(call)}: {result.stderr.strip()}"
    return "ok"


def recoveries() -> dict[str, list[str]]:
    """Return options of `recover` by name. They include the update of the paper, which `train` does not offer."""
    result = {}
    dimensions = {"gfm": "12", "sensing": "12", "phase": "12", "bilinear": "8x6"}
    for kind, dim in dimensions.items():
        options = [kind, "--dim", dim, *([] if kind == "phase" else ["--rank", "2"])]
        for solver in ("auto", "moment", "kalman", "newton"):
            result[f"recover-{kind}-{solver}"] = [*options, "--solver", solver, "--noise", "0.1", "--rows", "3000"]
        result[f"recover-{kind}-paper"] = [*options, "--update", "paper", "--rows", "6000"]
    for diagonal in ("zero", "free"):
        options = ["gfm", "--dim", "12", "--rank", "2", "--diagonal", diagonal, "--features", "skewed"]
        result[f"recover-gfm-{diagonal}"] = [*options, "--solver", "moment", "--rows", "6000", "--intercept", "1"]
    result["recover-gfm-theory"] = ["gfm", "--dim", "12", "--rank", "2", "--theory", "--rows", "4000"]
    return result


def recover(dyad: str, options: list[str], path: pathlib.Path) -> None:
    """Run `recover` and write its errors, final and by number of rows, as JSON."""
    call = [dyad, "recover", *options, "--threads", "1", "--json", "--quiet"]
    output = json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout)

    def numbers(fields: dict) -> dict:
        return {name: fields[name] for name in RECOVERY_FIELDS if name in fields}

    path.write_text(json.dumps({**numbers(output), "trace": [numbers(point) for point in output["trace"]]}, indent=1))
