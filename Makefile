# make conformance and make test set everything up in .venv; make help lists the rest.
# PYTHON=python3.12 chooses the interpreter; else the first of these that is Python 3.11 to 3.13.
ifndef PYTHON
PYTHON := $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && echo $$p && break; done)
endif

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
# What pip needs to know to leave the installed torch alone.
PINNED := $(VENV)/torch.txt
OUT ?= halfeven-report
# Each process has tests that follow each other, which share what is made once.
PYTEST_ARGS ?= -n auto --dist worksteal
# Extras to install; BACKENDS may also name pkg.mod:attr.
LIBRARIES ?= libraries
BACKENDS ?= default

PACKAGES := reference optimized conformance plugin
# Files, and folders, whose time tells of a file that was removed; /. keeps the folder conformance apart from the target.
SOURCES := $(shell find $(PACKAGES:%=%/.) -name __pycache__ -prune -o \( -type d -o -name '*.py' -o -name '*.toml' \
	-o -name '*.json' -o -name '*.ini' -o -name '*.cpp' -o -name '*.cu' -o -name '*.h' -o -name py.typed \) -print)

.DELETE_ON_ERROR:
.PHONY: help setup conformance test mutants reports docs libraries benchmark gpu sanitize lint clean

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1|/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-20s %s\n", $$1, $$2 }'

setup: $(READY) ## make .venv and install halfeven into it

conformance: $(READY) ## check the default backends against their profiles and write the report
	@status=0; $(BIN)/halfeven run $(BACKENDS) --out $(OUT) || status=$$?; echo; \
	case $$status in \
	0) echo "Every backend conforms to the profile it claims." ;; \
	1) echo "At least one backend differs from the profile it claims: that is a finding, and the run itself went well." ;; \
	*) echo "The run did not come to a result (status $$status)." >&2; exit $$status ;; \
	esac; echo "Report: $(OUT)/report.md (to read), $(OUT)/report.json (for halfeven diff)"

test: $(READY) ## run the tests on the installed package
	$(BIN)/pytest $(PYTEST_ARGS)

MODULES ?=

mutants: $(READY) ## show every mutant to the calls that must see it, and write docs/mutants.md (MODULES=onnx for some, no page)
	PYTHONPATH=tests $(BIN)/python -P tests/mutants/__main__.py "$(MODULES)" docs/mutants.md

libraries: $(READY) ## install the libraries that are checked (LIBRARIES=torchao,onnx,...)
	$(BIN)/python -m pip install --quiet -c $(PINNED) '.[$(LIBRARIES)]'

TIER ?= quick

reports: libraries ## check every installed library (TIER=quick or standard), one report each, under reports/
	$(BIN)/python tools/reports.py reports $(TIER)
	$(BIN)/halfeven questions all --out reports/questions

docs: $(READY) ## write docs/requirements.md and docs/findings.md, and give new choices their codes
	$(BIN)/python tools/requirements.py docs/requirements.md
	$(BIN)/python tools/findings.py docs/findings.md
	$(BIN)/python tools/codes.py

# Peers and plots: make libraries LIBRARIES=libraries,benchmark
benchmark: $(READY) ## time the kernels next to the installed peers (BENCHMARK_ARGS=--quick, or --help), and the suite
	$(BIN)/python benchmarks/speed.py $(BENCHMARK_ARGS)
	$(BIN)/python benchmarks/bulk.py

# Each step says what it found, and where there is no GPU that it was NOT RUN: then make fails, with Error 77.
STEPS ?= correct fast libraries

gpu: $(READY) ## on a GPU: right, fast, other libraries (STEPS=correct for one), into reports/gpu; call it again to go on
	@worst=0; for step in $(STEPS); do \
		PYTHONPATH=tools:tests:benchmarks $(BIN)/python -P -m gpu $$step; status=$$?; \
		case $$status-$$worst in 0-*|*-1|77-75) ;; 130-*) exit 130 ;; *) worst=$$status ;; esac; \
	done; exit $$worst

# The sanitizers' kernels go to a folder of their own, before the installed ones on the path.
SANITIZERS := -O1 -g -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all
FUZZ ?= 2000

sanitize: $(READY) ## hand the compiled operators any arguments at all, under ASan and UBSan (FUZZ=examples of each)
	HALFEVEN_CFLAGS="$(SANITIZERS)" $(BIN)/python -m pip install --quiet --no-deps --upgrade --target $(VENV)/sanitized .
	@ls $(VENV)/sanitized/halfeven/optimized/kernels/_cpu.so # without it every test would be skipped
	LD_PRELOAD="$$($${CXX:-g++} -print-file-name=libasan.so) $$($${CXX:-g++} -print-file-name=libstdc++.so)" ASAN_OPTIONS=detect_leaks=0 HALFEVEN_FUZZ=$(FUZZ) \
		PYTHONPATH=$(VENV)/sanitized $(BIN)/pytest -q -p no:cacheprovider tests/optimized/test_fuzz.py \
		tests/optimized/test_size_and_threads.py::test_larger_than_the_caches_and_anywhere_in_memory

# All three speak before the first fails. mypy runs in another folder, so that what it checks is what is installed.
lint: $(READY) ## ruff on the sources, mypy on the installed package
	@status=0; \
	$(BIN)/ruff check || status=1; \
	$(BIN)/ruff format --check || status=1; \
	(cd $(VENV) && bin/mypy --config-file ../pyproject.toml --cache-dir ../.mypy_cache \
		-p halfeven.reference -p halfeven.optimized -p halfeven.conformance -p halfeven.plugin) || status=1; \
	exit $$status

clean: ## remove .venv, build leftovers and the report of the last run
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis halfeven-report
	find $(PACKAGES) tests -name __pycache__ -prune -exec rm -rf {} +

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "halfeven needs Python 3.11 to 3.13: set PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || \
		{ echo "halfeven needs Python 3.11 to 3.13, and PYTHON=$(PYTHON) is not" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Not editable: what is tested is what a user installs. An old build/lib would bring back modules that were removed; the
# kernels' objects, in build/temp*, are kept.
$(READY): $(BIN)/python pyproject.toml setup.py constraints.txt tools/install_torch.py $(SOURCES)
	$(BIN)/python tools/install_torch.py constraints.txt $(PINNED)
	rm -rf build/lib* build/bdist*
	@echo "Installing halfeven with what it needs; its kernels are compiled, which takes a minute or more."
	$(BIN)/python -m pip install --quiet -c $(PINNED) '.[dev]'
	@touch $@
