# demo: a profile of real work, from a clean clone.   test: every test, Python and native.
# lint: what CI checks without running code.          bench: the cost of what stands on hot paths.
PYTHON ?= python3
JOBS ?= 2
VENV := .venv
INSTALLED := $(VENV)/.proton_bench_installed
PIP := python -m pip --disable-pip-version-check
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

.PHONY: demo test lint bench
.DELETE_ON_ERROR:

# The build tools come first, so that the kept build folder stays valid; hatchet too, because it
# has no wheel for Python 3.13 and later and needs a build environment of its own.
$(INSTALLED): pyproject.toml constraints.txt $(shell find native -type f)
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install -q -c constraints.txt scikit-build-core pybind11 cmake ninja llnl-hatchet
	$(PIP) install -q -c constraints.txt --no-build-isolation -e '.[all]'
	touch $@

demo: $(INSTALLED)
	mkdir -p build
	proton -n build/demo pytest examples/
	proton view build/demo.proton

test: $(INSTALLED)
	python -m pytest -n $(JOBS) tests
	cmake -S native --preset tests -DPython_EXECUTABLE="$(CURDIR)/$(VENV)/bin/python"
	cmake --build build/native-tests -j $(JOBS)
	ctest --test-dir build/native-tests -j $(JOBS) --output-on-failure --no-tests=error

lint: $(INSTALLED)
	ruff check .
	ruff format --check .
	mypy
	lint-imports
	find native tests/native -name '*.cpp' -o -name '*.h' | xargs clang-format --dry-run -Werror

bench: $(INSTALLED)
	python benchmarks/micro/hot_paths.py
