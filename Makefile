# Everything runs in a local virtual environment; nothing is installed outside the checkout.
# Needs Python 3.11 or newer, a C++20 compiler and make; CMake and Ninja come as build requirements.

PYTHON ?= python3
VENV ?= .venv
OLDEST_VENV ?= .venv-oldest
SANITIZE_VENV ?= .venv-sanitize
THREADS_VENV ?= .venv-threads
ALLOCATIONS_VENV ?= .venv-allocations
RELEASE_VENV ?= .venv-release
PYTEST_WORKERS ?= 2
# of the kernels: what this machine runs; `all`, as wheels have them, takes half as long again
INSTRUCTION_SETS ?= local
PYTEST_ARGS ?=
BENCH_ARGS ?=
BASE ?= HEAD~1
REGRESSION_ARGS ?=
RELEASE_ARGS ?=
PAPERS_ARGS ?=
FUZZ_SECONDS ?= 60
GALLERY ?= yes
FUZZ_CXX ?= clang++
FUZZ_CORPUS ?= build/fuzz
FUZZ_TARGETS := model model_tree larank_tree checkpoint checkpoint_tree csv jsonl svmlight npz npz_members directory liblinear
SOAK_SECONDS ?= 3600
HUNT_COUNT ?= 10000
PAPERS := blondel_table1 blondel_table2 blondel_figure1 blondel_figure2 blondel_figures3_4 \
	keerthi_section2 keerthi_figures1_4 keerthi_figures2_3 keerthi_figure5 keerthi_tables \
	walrus_table1 walrus_figure1 walrus_figure2 walrus_convergence walrus_table7 walrus_tables8_9 \
	lapin_projection lapin_table1 larank_table1 larank_scale larank_table2 larank_figures

ifeq ($(OS),Windows_NT)
BIN_DIR := Scripts
else
BIN_DIR := bin
endif
BIN := $(VENV)/$(BIN_DIR)
OLDEST_BIN := $(OLDEST_VENV)/$(BIN_DIR)
SANITIZE_BIN := $(SANITIZE_VENV)/$(BIN_DIR)
THREADS_BIN := $(THREADS_VENV)/$(BIN_DIR)
ALLOCATIONS_BIN := $(ALLOCATIONS_VENV)/$(BIN_DIR)

PYTHON_CODE := src/polymargin tests benchmarks docs examples tools fuzz
KERNELS := $(shell find src/core fuzz -name '*.hpp' -o -name '*.cpp' 2>/dev/null)
SOURCES := pyproject.toml CMakeLists.txt $(wildcard README.md LICENSE) \
	$(shell find src -type f -not -name '*.pyc' -not -name '*.so' -not -name '*.pyd' -not -name '*.pyi' 2>/dev/null)
WHEELS := $(VENV)/wheel
WHEEL = $$(ls $(WHEELS)/polymargin-*.whl)

# The sanitizer runtimes must be loaded before Python itself; libstdc++ too, or the interceptor
# of C++ exceptions finds nothing to call. Their reports go straight to stderr, hence --capture=sys
# where they are used: pytest would lose them when the process is ended.
THREAD_RUNTIMES = $(foreach library,tsan stdc++,$(shell $(CXX) -print-file-name=lib$(library).so))
SANITIZER_RUNTIMES = $(foreach library,asan ubsan stdc++,$(shell $(CXX) -print-file-name=lib$(library).so))

.DEFAULT_GOAL := help
.PHONY: allocations fuzz hunt soak
.PHONY: help demo demo-scale docs test test-oldest lint format bench bench-embeddings bench-full bench-kernel bench-path bench-regression bench-stream \
	results papers papers-full release-check sanitize sanitize-threads clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1 /' | \
		while read -r name text; do printf '  %-17s %s\n' "$$name" "$$text"; done

demo: $(VENV)/.package ## train every loss on a small data set and print a table
	$(BIN)/python -m polymargin.demo

demo-scale: $(VENV)/.extra-dask ## train on more data than the training, or any worker, may hold
	$(BIN)/python examples/beyond_memory.py
	$(BIN)/python examples/beyond_one_machine.py

test: $(VENV)/.extra-test ## run the tests (PYTEST_ARGS="-k name", --run-slow, ...)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(PYTEST_WORKERS) $(PYTEST_ARGS)

test-oldest: $(OLDEST_VENV)/.package ## run the tests with the oldest versions that pyproject.toml allows
	OPENBLAS_NUM_THREADS=1 $(OLDEST_BIN)/python -m pytest -n $(PYTEST_WORKERS) $(PYTEST_ARGS)

lint: $(VENV)/.extra-dev ## check style, types, layers and layout of the Python and C++ code
	@cp $(VENV)/build/_core.pyi src/polymargin/  # types of the compiled module, as built
	@failed=""; \
	check() { echo "==> $$*"; "$$@" || failed="$$failed [$$*]"; }; \
	check $(BIN)/ruff check $(PYTHON_CODE); \
	check $(BIN)/ruff format --check $(PYTHON_CODE); \
	check $(BIN)/mypy src/polymargin; \
	check $(BIN)/lint-imports; \
	check $(BIN)/python tools/check_layout.py; \
	check $(BIN)/python tools/walk.py --check; \
	echo "==> clang-format on src/core"; \
	$(BIN)/clang-format --dry-run --Werror $(KERNELS) || failed="$$failed [clang-format]"; \
	if [ -n "$$failed" ]; then echo "lint failed:$$failed"; exit 1; fi; \
	echo "lint passed"

format: $(VENV)/.extra-dev ## rewrite the code in the project's style
	$(BIN)/ruff check --fix-only $(PYTHON_CODE)
	$(BIN)/ruff format $(PYTHON_CODE)
	$(BIN)/clang-format -i $(KERNELS)

bench: $(VENV)/.peers ## measure the speed beside LIBLINEAR and other solvers; resumes (BENCH_ARGS="--fresh" does not)
	$(BIN)/python -m benchmarks.speed $(BENCH_ARGS)
	$(BIN)/python -m benchmarks.solvers_bench $(filter --fresh,$(BENCH_ARGS))

bench-full: $(VENV)/.peers-full ## every solver on ten data sets and four C: many hours, resumes
	$(BIN)/python -m benchmarks.solvers_bench --full $(BENCH_ARGS)

bench-regression: $(VENV)/.extra-bench ## compare with another commit, in turns (BASE=commit, REGRESSION_ARGS="--threshold 1.1")
	$(BIN)/python -m benchmarks.regression --base $(BASE) $(REGRESSION_ARGS)

results: $(VENV)/.extra-bench ## write docs/benchmarks.md, README's figures and others, and its picture anew from the result files
	$(BIN)/python -m benchmarks.report
	$(BIN)/python -m benchmarks.headline
	$(BIN)/python -m benchmarks.by_hand --page-only
	$(BIN)/python -m benchmarks.beyond_memory page

docs: $(VENV)/.extra-docs ## build the documentation site in build/site; GALLERY=no leaves the examples out
	OPENBLAS_NUM_THREADS=1 GALLERY=$(GALLERY) $(BIN)/python -m sphinx -W --keep-going -q -c docs . build/site
	$(BIN)/python tools/check_site.py build/site
	@echo "the site is in build/site/index.html"

bench-kernel: $(VENV)/.extra-bench ## measure kernel machines beside scikit-learn's SVC (BENCH_ARGS="--quick")
	$(BIN)/python -m benchmarks.kernel_machines $(BENCH_ARGS)

bench-path: $(VENV)/.extra-bench ## measure paths over C and cross-validation (BENCH_ARGS="--quick")
	$(BIN)/python -m benchmarks.path $(BENCH_ARGS)

bench-embeddings: $(VENV)/.extra-bench ## measure linear probes on sentence embeddings beside scikit-learn's (BENCH_ARGS="--limit 100")
	$(BIN)/python -m benchmarks.embeddings $(BENCH_ARGS)

bench-stream: $(VENV)/.extra-bench ## measure one pass of partial_fit beside SGDClassifier (BENCH_ARGS="--quick")
	$(BIN)/python -m benchmarks.streams $(BENCH_ARGS)

papers: $(VENV)/.extra-papers ## repeat reduced experiments of the papers within an hour; resumes (PAPERS_ARGS="--fresh")
	@for name in $(PAPERS); do \
		echo "==> $$name"; $(BIN)/python -m benchmarks.papers.$$name --quick $(PAPERS_ARGS) || exit 1; done
	$(BIN)/python -m benchmarks.papers.page

papers-full: $(VENV)/.extra-papers ## repeat the experiments of the papers as a whole; hours, resumes, says how long first
	@$(BIN)/python -m benchmarks.papers.costs
	@for name in $(PAPERS); do \
		echo "==> $$name"; $(BIN)/python -m benchmarks.papers.$$name $(PAPERS_ARGS) || exit 1; done
	$(BIN)/python -m benchmarks.papers.page

sanitize: $(SANITIZE_VENV)/.package ## run the kernel tests under the address and undefined-behaviour sanitizers
	LD_PRELOAD="$(SANITIZER_RUNTIMES)" \
	ASAN_OPTIONS=detect_leaks=0 \
	UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
	$(SANITIZE_BIN)/python -m pytest -p no:cacheprovider --capture=sys tests/core tests/projections \
		tests/data tests/files/test_svmlight.py tests/fuzz tests/models/test_bad_models.py tests/estimators/test_kernel.py tests/estimators/test_larank.py \
		tests/estimators/test_larank_stream.py tests/estimators/test_partial_fit.py $(PYTEST_ARGS)

# The threads of OpenBLAS are not built with the sanitizer, so there is one only. A forked child
# that starts threads is what the sanitizer refuses, so that test is left out.
sanitize-threads: $(THREADS_VENV)/.package ## run the tests of threaded sweeps under the thread sanitizer
	LD_PRELOAD="$(THREAD_RUNTIMES)" OPENBLAS_NUM_THREADS=1 \
	TSAN_OPTIONS=halt_on_error=1:exitcode=66:ignore_noninstrumented_modules=1 \
	$(THREADS_BIN)/python -m pytest -p no:cacheprovider --capture=sys -k "not forked" tests/core/test_class_ranges.py \
		tests/core/test_sweeps.py tests/solvers/test_sharing.py $(PYTEST_ARGS)

allocations: $(ALLOCATIONS_VENV)/.package ## refuse every allocation of the core in turn, in small fits
	OPENBLAS_NUM_THREADS=1 $(ALLOCATIONS_BIN)/python -m pytest -p no:cacheprovider tests/core/test_allocations.py --run-slow $(PYTEST_ARGS)

fuzz: $(VENV)/.extra-fuzz ## fuzz whatever reads bytes, FUZZ_SECONDS each; needs clang
	$(BIN)/python -m fuzz.seeds $(FUZZ_CORPUS)
	$(FUZZ_CXX) -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		-I src/core fuzz/svmlight.cpp -o $(FUZZ_CORPUS)/svmlight_parser
	$(FUZZ_CORPUS)/svmlight_parser -max_total_time=$(FUZZ_SECONDS) -max_len=4096 \
		-artifact_prefix=$(FUZZ_CORPUS)/found- $(FUZZ_CORPUS)/svmlight tests/fuzz/corpus/svmlight
	for target in $(FUZZ_TARGETS); do echo "==> $$target"; mkdir -p tests/fuzz/corpus/$$target; \
		$(BIN)/python -m fuzz.run $$target $(FUZZ_CORPUS)/$$target tests/fuzz/corpus/$$target \
		-max_total_time=$(FUZZ_SECONDS) -max_len=20000 -rss_limit_mb=3000 -timeout=60 \
		-artifact_prefix=$(FUZZ_CORPUS)/found-$$target- || exit 1; done

hunt: $(VENV)/.extra-test ## look for wrong models among HUNT_COUNT random problems
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.estimators.hunt --count $(HUNT_COUNT)

soak: $(VENV)/.extra-test ## fits, streams, files, interrupts and kills for SOAK_SECONDS; nothing may grow
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tools/soak.py --seconds $(SOAK_SECONDS)

release-check: $(RELEASE_VENV)/.tools ## all that can be checked of a release without publishing it
	$(RELEASE_VENV)/$(BIN_DIR)/python tools/release_check.py $(RELEASE_ARGS)

clean: ## remove environments, builds and caches
	rm -rf $(VENV) $(OLDEST_VENV) $(SANITIZE_VENV) $(THREADS_VENV) $(ALLOCATIONS_VENV) $(RELEASE_VENV) build dist wheelhouse
	rm -rf docs/api docs/gallery
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.created:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "polymargin needs Python 3.11 or newer; try make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	@touch $@

# The wheel is built once for all targets; --force-reinstall because its version does not change.
# Each environment has a build directory of its own: CMake's cache would carry options over.
$(VENV)/.wheel: $(VENV)/.created $(SOURCES)
	rm -rf $(WHEELS)
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir $(WHEELS) . \
		--config-settings=build-dir=$(VENV)/build \
		--config-settings=cmake.define.POLYMARGIN_INSTRUCTION_SETS=$(INSTRUCTION_SETS)
	@touch $@

$(VENV)/.package: $(VENV)/.wheel
	$(BIN)/python -m pip install --quiet --force-reinstall --no-deps "$(WHEEL)"
	$(BIN)/python -m pip install --quiet "$(WHEEL)"
	@touch $@

$(VENV)/.extra-%: $(VENV)/.package
	$(BIN)/python -m pip install --quiet "$(WHEEL)[$*]"
	@touch $@

# Solvers to compare with that may not install everywhere; one that does not is reported as absent.
# Without their dependencies, so that none of them changes what the others run on.
$(VENV)/.peers: $(VENV)/.extra-bench
	$(BIN)/python -m pip install --quiet --no-deps snapml || echo "snapml does not install here"
	@touch $@

# An sdist that needs NumPy and Cython to build, for some minutes: for the full benchmark only.
$(VENV)/.peers-full: $(VENV)/.peers
	$(BIN)/python -m pip install --quiet cython "setuptools<74" wheel && \
		$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation sklearn-contrib-lightning || \
		echo "sklearn-contrib-lightning does not install here"
	@touch $@

# With the interpreter of the wheel, for which the oldest versions must have wheels too: 3.11 or 3.12.
$(OLDEST_VENV)/.created: $(VENV)/.created
	$(BIN)/python -m venv $(OLDEST_VENV)
	@touch $@

$(OLDEST_VENV)/.package: $(OLDEST_VENV)/.created $(VENV)/.wheel tests/oldest.py
	$(BIN)/python tests/oldest.py > $(OLDEST_VENV)/constraints.txt
	$(OLDEST_BIN)/python -m pip install --quiet --force-reinstall --no-deps "$(WHEEL)"
	$(OLDEST_BIN)/python -m pip install --quiet --constraint $(OLDEST_VENV)/constraints.txt \
		--only-binary numpy,scipy,scikit-learn "$(WHEEL)[test]"
	@touch $@

# Its tools alone: what is checked is built and installed in environments of its own.
$(RELEASE_VENV)/.tools: pyproject.toml
	$(PYTHON) -m venv $(RELEASE_VENV)
	$(RELEASE_VENV)/$(BIN_DIR)/python -c 'import tomllib; \
		print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["release"], sep="\n")' \
		> $(RELEASE_VENV)/requirements.txt
	$(RELEASE_VENV)/$(BIN_DIR)/python -m pip install --quiet --requirement $(RELEASE_VENV)/requirements.txt
	@touch $@

$(SANITIZE_VENV)/.package: $(SOURCES)
	$(PYTHON) -m venv $(SANITIZE_VENV)
	CXX="$(CXX)" $(SANITIZE_BIN)/python -m pip install --quiet ".[test]" \
		--config-settings=build-dir=$(SANITIZE_VENV)/build \
		--config-settings=cmake.define.POLYMARGIN_SANITIZE=address,undefined
	@touch $@

$(THREADS_VENV)/.package: $(SOURCES)
	$(PYTHON) -m venv $(THREADS_VENV)
	CXX="$(CXX)" $(THREADS_BIN)/python -m pip install --quiet ".[test]" \
		--config-settings=build-dir=$(THREADS_VENV)/build \
		--config-settings=cmake.define.POLYMARGIN_SANITIZE=thread
	@touch $@

$(ALLOCATIONS_VENV)/.package: $(SOURCES)
	$(PYTHON) -m venv $(ALLOCATIONS_VENV)
	CXX="$(CXX)" $(ALLOCATIONS_BIN)/python -m pip install --quiet ".[test]" \
		--config-settings=build-dir=$(ALLOCATIONS_VENV)/build \
		--config-settings=cmake.define.POLYMARGIN_INSTRUCTION_SETS=baseline \
		--config-settings=cmake.define.POLYMARGIN_FAIL_ALLOCATIONS=ON
	@touch $@
