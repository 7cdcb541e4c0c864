# demo: a profile of real work, from a clean clone.   test: every test, Python and native.
# lint: what CI checks without running code.          bench: the cost of what stands on hot paths.
# docs: the pages in build/docs.                      test-pandas3: analysis on pandas 3, no hatchet.
PYTHON ?= python3
JOBS ?= 2
VENV := .venv
INSTALLED := $(VENV)/.proton_bench_installed
PIP := python -m pip --disable-pip-version-check
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

# An environment of its own: hatchet pins pandas<3. Without the recorder, so it needs no compiler.
PANDAS3 := .venv-pandas3
PANDAS3_TESTS := tests/unit/analysis tests/unit/formats tests/unit/profile tests/unit/report \
  tests/unit/diagnosis tests/unit/test_specs.py tests/unit/test_viewer.py

.PHONY: demo test lint bench docs test-pandas3
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

docs: $(INSTALLED)
	python -m sphinx -W --keep-going -b html docs build/docs

test-pandas3: $(PANDAS3)/.proton_bench_installed
	$(PANDAS3)/bin/python -m pytest -n $(JOBS) $(PANDAS3_TESTS)

$(PANDAS3)/.proton_bench_installed: pyproject.toml constraints.txt
	test -x $(PANDAS3)/bin/python || $(PYTHON) -m venv $(PANDAS3)
	sed 's/^pandas==.*/pandas==3.1.1/' constraints.txt > $(PANDAS3)/constraints.txt
	$(PANDAS3)/bin/$(PIP) install -q -c $(PANDAS3)/constraints.txt scikit-build-core
	PROTON_BENCH_BUILD_NATIVE=OFF $(PANDAS3)/bin/$(PIP) install -q --no-build-isolation \
	  -c $(PANDAS3)/constraints.txt -e '.[test]'
	touch $@

# Each script measures one thing against another and prints the ratio.
bench: $(INSTALLED)
	set -e; for name in $(basename $(notdir $(wildcard benchmarks/micro/*.py))); do \
	  python -m benchmarks.micro.$$name; done
