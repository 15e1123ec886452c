# dyad: `make demo` shows it, `make test` tests it. Both install what is missing on a bare Debian machine.

DYAD := build/release/dyad

.PHONY: build configure demo test check build-bench bench plots format clean

build: configure
	@cmake --build --preset release --target dyad_cli -- --quiet

configure:
	@scripts/install-dependencies build
	@cmake --preset release --log-level=WARNING >/dev/null

demo: build
	@scripts/demo $(abspath $(DYAD))

test: configure
	@cmake --build --preset release -- --quiet
	@ctest --preset release -j 2

# Everything: formatting, clang-tidy, all tests under the address, undefined-behaviour and thread sanitizers.
check: test
	@scripts/install-dependencies lint
	@scripts/lint
	@for sanitizers in asan-ubsan tsan; do \
	  cmake --preset $$sanitizers --log-level=WARNING >/dev/null && \
	  cmake --build --preset $$sanitizers -- --quiet && \
	  ctest --preset $$sanitizers -j 2 || exit 1; \
	done

bench: build-bench
	@scripts/bench build/bench

plots: build-bench
	@scripts/plots build/bench

build-bench:
	@scripts/install-dependencies build bench
	@cmake --preset bench --log-level=WARNING >/dev/null
	@cmake --build --preset bench -- --quiet

format:
	@scripts/install-dependencies lint
	@git ls-files '*.h' '*.cpp' | xargs clang-format -i

clean:
	rm -rf build
