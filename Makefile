# demo: a profile of real work, from a clean clone.   test: every test, Python and native.
# check: lint, and the unit tests of changed rooms.     nightly: all sweeps, long hunts for races, the fuzzer, drop-ins.
# sanitize: native tests under TSan, as test runs them under ASan and UBSan.
# lint: what CI checks without running code.
# fuzz: changed files for every reader, for SECONDS on JOBS cores: CONTRIBUTING.md.
# docs: the pages in build/docs.                      matrix: one row of docs/reference/versions.md, as ROW=pandas-3.
# bench: the cost of what stands on hot paths.        bench-native: the same inside the core.
# lock: requirements.txt and requirements-demo.txt, the hashes of constraints.txt.
# wheels: dist/, for each of PYTHONS that is here: built, then tried where no compiler is.
# gate: whether these got slower than in BASE; minutes, and no test: a busy machine cannot tell.
PYTHON ?= python3
JOBS ?= 2
VENV := .venv
DEMO := $(VENV)/.proton_bench_demo
INSTALLED := $(VENV)/.proton_bench_installed
PIP := python -m pip --disable-pip-version-check
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
# What is imported, also assertions that pytest rewrites, is compiled once and kept.
unexport PYTHONDONTWRITEBYTECODE

# What to compare with: a commit, branch or tag. Other options of the gate: make gate GATE='--github'
BASE ?= $(shell git merge-base HEAD origin/main 2>/dev/null || echo HEAD)
GATE ?=

# How long `make fuzz` runs, and what its dice begin with.
SECONDS ?= 600
SEED ?= 1

# The interpreters that `make wheels` looks for.
PYTHONS ?= 3.11 3.12 3.13 3.14 3.15

.PHONY: demo wheels check test nightly sanitize fuzz lint bench bench-native gate docs matrix lock
.DELETE_ON_ERROR:

# Each file that is downloaded must have a hash of requirements.txt, which has those of all platforms.
# Not so torch and the CUDA libraries that it asks for: every index has builds of its own (CPU, CUDA,
# ROCm), so that only their versions are given. pip cannot hash an editable install, nor what builds
# hatchet, which has no wheel for Python 3.13 and later; it gets a build environment of its own.
UNHASHED := torch $(shell grep -oE '^(cuda|nvidia)-[a-z0-9-]+' constraints.txt | grep -vx nvidia-ml-py)

# Compiling takes longest, so it comes first, beside the rest. --no-compile: most modules of torch and
# scipy are never imported, and the others are compiled then.
COMPILING := cmake|ninja|packaging|pathspec|pybind11|scikit-build-core
$(DEMO): pyproject.toml constraints.txt requirements-demo.txt $(shell find native -type f)
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	mkdir -p build
	awk '/^[a-z]/ { keep = /^($(COMPILING))==/ } keep' requirements-demo.txt >build/compiling.txt
	@echo "== packages that compile the recorder"
	$(PIP) install --no-compile --require-hashes -r build/compiling.txt
	@echo "== the recorder is compiled, and packages are installed by their hashes meanwhile; torch and its"
	@echo "== CUDA libraries by version, without hashes: builds differ"
	$(PIP) install -v --no-compile --no-deps --no-build-isolation -e . & \
	  $(PIP) install --no-compile --require-hashes -r requirements-demo.txt && \
	  $(PIP) install --no-compile -c constraints.txt torch && wait $$!
	touch $@

$(INSTALLED): $(DEMO) requirements.txt
	@echo "== packages of tests and pages, by their hashes"
	$(PIP) install --no-compile --require-hashes -r requirements.txt
	touch $@

# With uv, after a change of pyproject.toml or constraints.txt.
LOCK := uv pip compile -q pyproject.toml -c constraints.txt --universal --generate-hashes --no-annotate \
  --custom-compile-command 'make lock' $(UNHASHED:%=--no-emit-package %)
lock:
	$(LOCK) --all-extras -o requirements.txt
	$(LOCK) --extra build --extra torch --extra triton -o requirements-demo.txt

# Without the settings of our own tests, which name plugins that the demo lacks.
demo: $(DEMO)
	mkdir -p build
	proton -n build/demo pytest -c /dev/null --rootdir . examples/
	proton view build/demo.proton

wheels:
	.ci/wheels $(PYTHONS)

# The unit tests of folders that differ from BASE; all of them where none does.
CHANGED = $(shell git diff --name-only $(BASE) -- proton_bench tests/unit)
CHANGED_TESTS = $(wildcard $(sort $(patsubst proton_bench/%,tests/unit/%,$(dir $(CHANGED)))))
check: lint
	python -m pytest -q -n $(JOBS) --dist worksteal tests/architecture $(or $(CHANGED_TESTS),tests/unit)

nightly: export PROTON_BENCH_STRESS = 20
nightly: test sanitize fuzz
	.ci/drop-in

test: $(INSTALLED)
	python -m pytest -n $(JOBS) --dist worksteal tests
	cd native && cmake --preset asan -DPython_EXECUTABLE="$(CURDIR)/$(VENV)/bin/python"
	cmake --build build/native-asan -j $(JOBS)
	cd native && ctest --preset asan -j $(JOBS) --no-tests=error

sanitize: $(INSTALLED)
	cd native && cmake --preset tsan -DPython_EXECUTABLE="$(CURDIR)/$(VENV)/bin/python"
	cmake --build build/native-tsan -j $(JOBS)
	cd native && ctest --preset tsan -j $(JOBS) --no-tests=error

fuzz: $(INSTALLED)
	cd native && cmake --preset fuzz -DPython_EXECUTABLE="$(CURDIR)/$(VENV)/bin/python"
	cmake --build build/native-fuzz -j $(JOBS) --target fuzz_readers
	set -e; for reader in build/native-fuzz/tests/read_*; do \
	  $$reader --attempts 200000 --seed $(SEED) tests/data/cupti tests/data/golden; done
	python -m tests.fuzz --seconds $(SECONDS) --jobs $(JOBS) --seed $(SEED)

lint: $(INSTALLED)
	ruff check .
	ruff format --check .
	mypy
	lint-imports
	find native tests/native benchmarks -name '*.cpp' -o -name '*.h' | xargs clang-format --dry-run -Werror

docs: $(INSTALLED)
	python -m sphinx -W --keep-going -b html docs build/docs

matrix: $(if $(filter triton-% torch-% cupti-%,$(ROW)),$(INSTALLED))
	JOBS=$(JOBS) .ci/matrix $(ROW)

# Each script measures one thing against another and prints the ratio.
bench: bench-native
	set -e; for name in $(basename $(notdir $(wildcard benchmarks/micro/*.py))); do \
	  python -m benchmarks.micro.$$name; done

gate: $(INSTALLED)
	python -m benchmarks.hot_paths --base-ref "$(BASE)" $(GATE)

bench-native: $(INSTALLED)
	cmake -S native --preset tests -DPython_EXECUTABLE="$(CURDIR)/$(VENV)/bin/python"
	cmake --build build/native-tests -j $(JOBS) --target native_hot_paths native_cupti native_amd
	build/native-tests/native_hot_paths
	PROTON_BENCH_CUPTI_LIB=build/native-tests/tests/fakes/doubles/libcupti.so \
	  LD_LIBRARY_PATH=build/native-tests/tests/fakes/doubles build/native-tests/native_cupti
	set -e; cd build/native-tests; doubles=tests/fakes/doubles; \
	  PROTON_BENCH_HIP_LIB=$$doubles/libamdhip64.so \
	  PROTON_BENCH_HSA_LIB=$$doubles/libhsa-runtime64.so \
	  PROTON_BENCH_ROCTRACER_LIB=$$doubles/libroctracer64.so \
	  PROTON_BENCH_ROCPROFILER_LIB=$$doubles/librocprofiler-sdk.so \
	  LD_LIBRARY_PATH=$$doubles ./native_amd
