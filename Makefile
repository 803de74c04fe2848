# The commands people use. `make demo` and `make test` do all set-up on Debian and Ubuntu.
.PHONY: demo test build setup python wheel conformance asan tsan format tidy bench clean
BUILD := build/release
JOBS ?= $(shell nproc)

demo: $(BUILD)/build.ninja
	@cmake --build $(BUILD) --target pumice_cli -j $(JOBS)
	@tools/demo.sh

# While the compiler runs, pip downloads: PyTorch takes minutes, most of them waiting. Where that fails,
# tools/test_python.sh tries again and says why, after the tests that need no Python. (Not $(MAKE) build: a
# line that names it runs under `make -n` too.)
test: $(BUILD)/build.ninja
	@tools/python_environment.sh & environment=$$!; \
	  cmake --build $(BUILD) -j $(JOBS) || { built=$$?; kill $$environment; exit $$built; }; \
	  wait $$environment || true
	@tools/fetch_nvrtc.sh
	@ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS)
	@tools/test_python.sh

build: $(BUILD)/build.ninja
	@cmake --build $(BUILD) -j $(JOBS)

setup:
	@tools/setup.sh

$(BUILD)/build.ninja: | setup
	@cmake --preset release

# The Python package in an environment of its own, with PyTorch (gigabytes), and its tests: part of
# `make test`.
python: | setup
	@tools/test_python.sh

# Other libraries' own tests and networks of other projects, from checkouts in PUMICE_FOREIGN, compared
# with the expected tables; minutes. PYTHON has the package and PyTorch.
PYTHON ?= build/python-venv/bin/python
conformance:
	@command -v $(PYTHON) >/dev/null || { echo "pumice: there is no $(PYTHON); run \`make python\` first, or give PYTHON=" >&2; exit 1; }
	@$(PYTHON) tools/conformance.py

# The wheel for others to install, with kernels compiled ahead: ARCHITECTURES="sm_80 sm_90a", by default all.
wheel: | setup
	@tools/build_wheel.sh $(ARCHITECTURES)

# The unit tests under AddressSanitizer and UndefinedBehaviorSanitizer.
asan: | setup
	@test -f build/asan/build.ninja || cmake --preset asan
	@cmake --build build/asan -j $(JOBS)
	@ctest --test-dir build/asan --output-on-failure -j $(JOBS) --label-exclude slow

tsan: | setup
	@test -f build/tsan/build.ninja || cmake --preset tsan
	@cmake --build build/tsan -j $(JOBS)
	@ctest --test-dir build/tsan --output-on-failure -j $(JOBS) --label-exclude slow

SOURCES := $(shell git ls-files '*.cpp' '*.hpp' '*.h' 2>/dev/null)

# $(call need,PROGRAM): a sentence where a tool is missing that `make setup` leaves out.
need = command -v $(1) >/dev/null || { echo "pumice: $(1) is missing; install the package $(1), as with 'apt-get install $(1)'" >&2; exit 1; }

format:
	@$(call need,clang-format)
	@clang-format -i $(SOURCES)

# clang-tidy 16 or later: older ones lack std::source_location.
tidy:
	@$(call need,clang-tidy)
	@$(MAKE) --no-print-directory setup
	@cmake -S . -B build/tidy -DPUMICE_PRECOMPILE=OFF >/dev/null   # it cannot read what another compiler precompiled
	@cmake --build build/tidy -j $(JOBS)                           # sources and headers are made, too
	@clang-tidy -p build/tidy --quiet $(filter src/%.cpp cli/%.cpp,$(SOURCES))

bench: build
	@tools/bench.sh

clean:
	@rm -rf build out
