"""Prints the tensors of models, trains a matrix of small models, or compares two such matrices.

    dump-models show MODEL...
    dump-models run DYAD FOLDER [--only PATTERN] [--seed SEED]
    dump-models compare A B [--tolerance 1e-10] [--single-tolerance 1e-4] [--predictions-only]
"""

import argparse
import fnmatch
import pathlib
import sys
import time

import compare
import data
import matrix


def show(arguments: argparse.Namespace) -> int:
    for model in arguments.models:
        for line in compare.describe(model):
            print(f"{model.stem}: {line}")
    return 0


def run(arguments: argparse.Namespace) -> int:
    folder = arguments.folder
    if folder.exists() and any(folder.iterdir()):
        raise SystemExit(f"dump-models: {folder} is not empty; specify a new or empty folder")
    files = data.generate(folder / "data", arguments.seed)
    dyad = str(arguments.dyad.resolve())
    start = time.monotonic()
    count = failures = 0
    with open(folder / "listing.txt", "w") as listing:
        for model_run in matrix.runs(files):
            if not fnmatch.fnmatch(model_run.name, arguments.only):
                continue
            outcome = matrix.train(dyad, model_run, folder)
            count += 1
            if outcome != "ok":
                print(f"{model_run.name}: {outcome}", file=listing)
                if outcome != "rejected":
                    failures += 1
                    print(f"{model_run.name} {outcome}")
                continue
            for line in compare.describe(folder / f"{model_run.name}.dyad"):
                print(f"{model_run.name}: {line}", file=listing)
        for name, options in matrix.recoveries().items():
            if fnmatch.fnmatch(name, arguments.only):
                matrix.recover(dyad, options, folder / f"{name}.json")
                count += 1
    models = len(list(folder.glob("*.dyad")))
    seconds = time.monotonic() - start
    print(f"{count} runs, {models} models, {failures} failures in {seconds:.0f} s; tensors in {folder / 'listing.txt'}")
    return 1 if failures else 0


def compare_command(arguments: argparse.Namespace) -> int:
    single = arguments.single_tolerance if arguments.single_tolerance is not None else arguments.tolerance
    tolerance = compare.Tolerance(arguments.tolerance, single)
    differences = compare.compare_folders(arguments.a, arguments.b, tolerance, arguments.predictions_only)
    for difference in differences:
        print(difference)
    names = {difference.split(":")[0].split(".")[0] for difference in differences}
    print(f"{len(differences)} differences in {len(names)} runs" if differences else "no differences")
    return 1 if differences else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="dump-models", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("show", help="print name, type, shape, SHA-256 and leading values of each tensor")
    command.add_argument("models", nargs="+", type=pathlib.Path, metavar="MODEL")
    command.set_defaults(function=show)
    command = commands.add_parser("run", help="train the matrix with a dyad binary; write models and predictions")
    command.add_argument("dyad", type=pathlib.Path, metavar="DYAD")
    command.add_argument("folder", type=pathlib.Path, metavar="FOLDER")
    command.add_argument("--only", default="*", metavar="PATTERN", help="names of runs, such as 'gfm-table-*-kalman-*'")
    command.add_argument("--seed", type=int, default=1, help="seed of the generated rows; default 1")
    command.set_defaults(function=run)
    command = commands.add_parser("compare", help="list differences between two folders; exit 1 if there are any")
    command.add_argument("a", type=pathlib.Path, metavar="A")
    command.add_argument("b", type=pathlib.Path, metavar="B")
    command.add_argument("--tolerance", type=float, help="maximum relative difference; default: bitwise equality")
    command.add_argument("--single-tolerance", type=float, help="maximum relative difference of models in single precision; default: --tolerance")
    command.add_argument("--predictions-only", action="store_true", help="do not compare tensors and metadata")
    command.set_defaults(function=compare_command)
    arguments = parser.parse_args()
    return int(arguments.function(arguments))


if __name__ == "__main__":
    sys.exit(main())
