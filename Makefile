# Everything a fresh machine needs: `make demo` and `make test` set themselves up (Python >= 3.10, g++).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find core binding blas -type f) CMakeLists.txt pyproject.toml \
  $(shell find src -name '*.py' -o -name '*.pyi' -o -name '*.gz')
# PyTorch is an outside judge in the tests and a peer of the benchmarks; its CPU build suffices.
# `make test TORCH=` leaves it out, and with it the tests that need it.
TORCH ?= torch==2.13.0 expecttest
CXX_FILES = $(shell git ls-files 'core/*.h' 'core/*.cpp' 'binding/*.h' 'binding/*.cpp' \
  'blas/*.h' 'blas/*.cpp')
# Instruction sets to build; none named: all. A processor with AVX2 alone cannot run the kernels that take
# longest to compile. (A wheel, as `pip wheel .` makes it, has all.)
ISAS ?= $(if $(shell grep -m1 -w avx2 /proc/cpuinfo 2>/dev/null | grep -vw avx512vl),scalar;avx2)
INSTALL = $(BIN)/python -m pip install --no-build-isolation $(if $(ISAS),-C 'cmake.define.TW_ISAS=$(ISAS)')
# The widest vectors that this machine runs.
VECTORS ?= $(if $(shell grep -m1 -w avx512vl /proc/cpuinfo 2>/dev/null),avx512,$(if $(shell \
  grep -m1 -w avx2 /proc/cpuinfo 2>/dev/null),avx2))
comma := ,
PY_FILES = src tests tools examples
# A cross compiler and an emulator of another processor; Debian: g++-aarch64-linux-gnu, qemu-user.
ARM64_CXX ?= aarch64-linux-gnu-g++
ARM64_RUN ?= qemu-aarch64 -L /usr/aarch64-linux-gnu

.PHONY: help build demo test test-core test-python test-all test-python-all test-sanitized test-races test-arm64 test-long \
  test-exhaustive test-programs test-gpu bench times lint format stub clean

help:  ## this list
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# Build tools live in the environment, so that builds are incremental.
$(VENV)/.tools: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet 'scikit-build-core>=0.10' 'nanobind>=2.4' 'cmake>=3.26' ninja
	@touch $@

$(VENV)/.built: $(SOURCES) $(VENV)/.tools
	$(INSTALL) '.[plot]'
	@touch $@

build: $(VENV)/.built  ## create .venv, compile and install the package

demo: build  ## train with each rung of the matmul ladder
	@mkdir -p outputs
	$(BIN)/tilewright train digits --ladder --plot outputs/digits-ladder.png
	@if [ -n "$$TILEWRIGHT_DATA" ]; then \
	  $(BIN)/tilewright train mnist --data "$$TILEWRIGHT_DATA" --epochs 1 --ladder \
	    --plot outputs/mnist-ladder.png; \
	fi

$(VENV)/.test: pyproject.toml | $(VENV)/.built
	$(BIN)/python -m pip install --quiet --group test
	$(if $(TORCH),$(BIN)/python -m pip install --quiet $(TORCH))
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet 'ruff>=0.8' 'mypy>=1.13' 'clang-format>=22,<23' \
	  rich platformdirs
	@touch $@

# The tiers, and what each holds: docs/design/testing.md.
test: test-core test-python  ## one run over every op and every feature: minutes

ON_ARM64 = $(if $(shell command -v $(ARM64_CXX) 2>/dev/null),test-arm64)
test-all: test-python-all test-sanitized test-races $(ON_ARM64)  ## the rest of what continuous integration runs

test-long: test-exhaustive test-programs  ## what is run on demand: hours

# The build's own objects, and the tests of the core linked to them.
BUILT = $$(ls -dt build/cp$$($(BIN)/python -c 'import sys; print("{}{}".format(*sys.version_info))')-*/ | head -1)
test-core: build  ## the C++ core alone, as it is in the package
	PATH="$(abspath $(BIN)):$$PATH" cmake --build $(BUILT) --target tilewright_tests
	$(BUILT)tilewright_tests

# $(1): options, $(2): build folder
build_core_tests = \
	PATH="$(abspath $(BIN)):$$PATH" cmake -S . -B $(2) -G Ninja $(1) \
	  -DTW_BUILD_MODULE=OFF -DTW_BUILD_TESTS=ON >/dev/null && \
	PATH="$(abspath $(BIN)):$$PATH" cmake --build $(2) --target tilewright_tests
sanitize = -DTW_SANITIZE=$(1) -DCMAKE_BUILD_TYPE=Sanitize

# Kernels are templates over the width: between one element at a time and the widest vectors no set has loops of its own.
test-sanitized: $(VENV)/.tools  ## the C++ core under address and undefined-behaviour sanitizers
	$(call build_core_tests,$(call sanitize,address$(comma)undefined) '-DTW_ISAS=scalar$(if $(VECTORS),;$(VECTORS))',build/sanitize)
	build/sanitize/tilewright_tests -matmul & others=$$!; \
	  build/sanitize/tilewright_tests matmul; own=$$?; \
	  wait $$others && exit $$own

# Kernels run without locks: one instruction set will do.
test-races: $(VENV)/.tools  ## the core's memory, threads, modes, transfers and scheduler under the thread sanitizer
	$(call build_core_tests,$(call sanitize,thread) -DTW_ISAS=scalar \
	  '-DTW_TESTS=pool;quota_pool;blocks_in_flight;scratch;thread_pool;interruption;transfer;scheduler;modes;matmul;split;reduce;convolution_shapes',build/races)
	build/races/tilewright_tests pool threads interruption transfer scheduler modes

cross_arm64 = -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
  -DCMAKE_CXX_COMPILER=$(ARM64_CXX) -DCMAKE_BUILD_TYPE=Emulated

# The emulator can neither fork a process with threads, as the tests of fork and exit do, nor reserve the
# addresses that arenas ask for. The rung split is of x86 alone; its tiles would be emulated in an emulator.
# That bits do not depend on threads is tested in the machine's own vectors, twice.
test-arm64: $(VENV)/.tools  ## the C++ core built for arm64, its tests on NEON kernels in an emulator
	$(call build_core_tests,$(cross_arm64),build/arm64)
	$(ARM64_RUN) build/arm64/tilewright_tests -fork -exit -arena -split_ -on_threads -number_of_threads

# A process for each core, up to eight; `make test-python JOBS=0` runs all in one.
JOBS ?= auto
PYTEST = $(BIN)/python -m pytest -n $(JOBS) --maxprocesses 8 --dist worksteal
test-python: build $(VENV)/.test  ## the Python tests of `make test`
	$(PYTEST) --tier test

test-python-all: build $(VENV)/.test  ## the Python tests of `make test-all`
	$(PYTEST) --tier all

test-programs: build $(VENV)/.test  ## ten times as many random programs
	$(PYTEST) --programs 30000 --feature-programs 3000 tests/ops/laws/test_random_programs.py \
	  tests/ops/laws/test_feature_programs.py

test-exhaustive: build $(VENV)/.test  ## float32 functions over all 2^32 inputs, on each instruction set (an hour)
	PYTHONPATH=tests $(BIN)/python tests/exhaustive.py

# On a machine with a GPU, in about five minutes and without a network: the same tests on it in place of
# the emulator, random programs among them, then a subset under compute-sanitizer where that is
# installed. On a machine without a compiler: WHEEL=path/to/the.whl, installed beside what there is.
WHEEL ?=
test-gpu: $(if $(WHEEL),,build $(VENV)/.test)  ## the tests of the GPU on the machine's own one
	PYTHON="$(if $(WHEEL),$(PYTHON),$(BIN)/python)" WHEEL="$(WHEEL)" tools/test_gpu.sh

times: build $(VENV)/.test  ## the times of CONTRIBUTING.md, measured on this machine, written there
	$(BIN)/python tools/time_changes.py --write

bench: build  ## compare with the peers that are installed
	$(BIN)/python -m pip install --quiet numpy matplotlib threadpoolctl jax $(TORCH)
	$(BIN)/tilewright bench matmul
	$(BIN)/tilewright bench train
	$(BIN)/tilewright bench overhead
	$(BIN)/tilewright bench pointwise

lint: $(VENV)/.dev  ## formatters in check mode, linters, types
	$(BIN)/clang-format --dry-run --Werror $(CXX_FILES)
	$(BIN)/ruff format --check $(PY_FILES)
	$(BIN)/ruff check $(PY_FILES)
	$(BIN)/mypy

format: $(VENV)/.dev  ## rewrite all sources in the project's format
	$(BIN)/clang-format -i $(CXX_FILES)
	$(BIN)/ruff format $(PY_FILES)
	$(BIN)/ruff check --fix $(PY_FILES)

stub: build  ## regenerate the type stubs, and the tables of docs/from_pytorch.md
	$(BIN)/python tools/make_stub.py

clean:  ## remove what was built
	rm -rf build $(VENV) dist outputs
