# `make demo` runs an example. `make test` runs the tests. Both install missing packages on Debian.

DYAD := build/release/dyad
with_python = -D DYAD_BUILD_PYTHON=ON -D Python_EXECUTABLE=$(abspath build/venv/bin/python)

.PHONY: build configure demo test check check-long docs dist coverage build-bench bench bench-compare paper format clean

build: configure
	@cmake --build --preset release --target dyad_cli -- --quiet

configure:
	@scripts/install-dependencies build
	@cmake --preset release --log-level=WARNING >/dev/null

demo: build
	@scripts/demo $(abspath $(DYAD)) build/demo/houses.svg

test: configure
	@scripts/install-dependencies python spark
	@scripts/python-environment build/venv
	@cmake --preset release --log-level=WARNING $(with_python) >/dev/null
	@cmake --build --preset release -- --quiet
	@ctest --preset release -j 2

# Checks that are not part of `make test`:
# - scripts/lint
# - all tests under the address and undefined-behavior sanitizers, adversarial streams included, and two minutes of every fuzzer
# - the command-line tests under the thread sanitizer
# - 300 faults at random times, and up to 100 failures of each system function in each command
# - the sdist and the wheel in a clean environment
# - the Python tests marked `long`, and two minutes of random arrays in Python under the address and undefined-behavior sanitizers
check: configure
	@scripts/install-dependencies lint fuzz python spark
	@scripts/lint
	@cmake --preset asan-ubsan --log-level=WARNING >/dev/null
	@cmake --build --preset asan-ubsan -- --quiet
	@ctest --preset asan-ubsan -j 2
	@FUZZ_JOBS=4 scripts/fuzz 120
	@cmake --preset tsan --log-level=WARNING >/dev/null
	@cmake --build --preset tsan --target dyad_cli_tests -- --quiet
	@ctest --preset tsan -j 2 -L threads
	@cmake --build --preset release --target dyad_cli dyad_faults dyad_call_failures failing_calls -- --quiet
	@$(call trial,faults) $(abspath build/release/tests/libfailing_calls.so) $(abspath build/trials) 300
	@$(call trial,call_failures) $(abspath build/release/tests/libfailing_calls.so) $(abspath build/trials) 100
	@scripts/wheel build/dist
	@scripts/python-environment build/venv
	@cmake --preset release --log-level=WARNING $(with_python) >/dev/null
	@cmake --build --preset release --target dyad_python dyad_python_testing -- --quiet
	@PYTHONPATH=build/release/python DYAD_FAILING_CALLS=$(abspath build/release/tests/libfailing_calls.so) \
	  build/venv/bin/python -m pytest -q -p no:cacheprovider -m long python/tests
	@scripts/fuzz-python 120

# Checks that take an hour or more: 100 million rows through a pipe in both precisions, all rows of the adversarial streams, and one
# hour of every fuzzer.
check-long: test
	@scripts/install-dependencies fuzz
	@$(call trial,long_run) build/trials 100000000
	@$(call trial,long_run) build/trials 100000000 --precision single
	@$(call trial,hostile) build/trials
	@FUZZ_JOBS=8 scripts/fuzz 3600

# $(call trial,NAME): path of a trial program (tests/trials), followed by its first argument, the path of dyad.
trial = build/release/dyad_$(1) $(abspath $(DYAD))

# Runs the commands and code blocks of the documentation, and builds the site build/site/html. Fails for a broken internal link.
docs: configure
	@scripts/install-dependencies docs python
	@scripts/python-environment build/venv
	@cmake --preset release --log-level=WARNING $(with_python) >/dev/null
	@cmake --build --preset release --target dyad_cli dyad_python -- --quiet
	@scripts/docs $(DYAD)

# Builds sdist, wheel and Debian package in build/dist, and tries each in an empty Debian 12. Requires root for the latter.
dist:
	@scripts/install-dependencies build python dist
	@scripts/dist build/dist

# Line coverage of the library by the tests, and a list of the lines without coverage.
coverage:
	@scripts/install-dependencies build coverage
	@scripts/coverage

# All benchmarks, including the comparison with other libraries, which are installed first. DYAD_DATA: folder of the real data (optional; scripts/fetch-data
# downloads them).
bench: build-bench
	@scripts/peers-environment build/peers
	@scripts/bench build/bench

# Compares the times of the kernels with those of another commit (see scripts/bench-compare):
#   make bench-compare [REV=COMMIT] [FILTER=REGEX]
bench-compare: build-bench
	@scripts/bench-compare build/bench "$(REV)" "$(FILTER)"

# Measures all tables and plots of docs/paper.md and writes them to the page and to docs/plots.
paper:
	@scripts/install-dependencies build bench
	@cmake --preset bench --log-level=WARNING >/dev/null
	@cmake --build --preset bench --target dyad_cli concentration learning_curves paper_tables rows_to_recover -- --quiet
	@scripts/paper build/bench

build-bench:
	@scripts/install-dependencies build bench python spark
	@scripts/python-environment build/venv
	@cmake --preset bench --log-level=WARNING $(with_python) >/dev/null
	@cmake --build --preset bench -- --quiet

format:
	@scripts/install-dependencies lint
	@git ls-files '*.h' '*.cpp' | xargs clang-format -i

clean:
	rm -rf build
