# Commands work on a fresh clone with the Swift toolchain. `release`, `coverage` and `differences` need python3
# too, `coverage` also WATERSHED_SHARED.
.DEFAULT_GOAL := help
.PHONY: help setup demo test fuzz programs requests simulate lint format bench startup docs coverage limits handbook differences \
  release test-readme test-release api-diff clean

SWIFT_PATHS := Package.swift Sources Plugins Tests Benchmarks/Sources $(wildcard Examples/*/Package.swift Examples/*/Sources)

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' Makefile

setup: ## Install what the build needs (Debian packages, only the missing ones)
	@scripts/setup

demo: setup ## Watch two devices sync through our server; ARGS="--seed 7 --keep"
	@WATERSHED_WITHOUT_FIXTURES=1 swift run -c debug watershed demo $(ARGS)

example: setup ## Build and run the first app of Examples/
	@cd Examples/ReadingList && swift run

classes: setup ## Build a model library and an app on it in release, and run the app
	swift build -c release --product blog-check
	.build/release/blog-check

test: setup ## Build and run every test
	swift build --build-tests
	@scripts/run-tests

fuzz: setup ## Send the server broken requests for long; ROUNDS=200000 SEED=7
	swift build --build-tests
	WATERSHED_FUZZ_SEED=$(or $(SEED),$(shell date +%s)) WATERSHED_FUZZ=$(or $(ROUNDS),200000) swift test --skip-build --disable-xctest --filter "FuzzTests"

programs: setup ## Compare contexts with a reference in many random programs; ROUNDS=20000 SEED=7
	swift build --build-tests
	WATERSHED_SEED=$(or $(SEED),$(shell date +%s)) WATERSHED_PROGRAMS=$(or $(ROUNDS),20000) swift test --skip-build --disable-xctest --filter "RandomProgramTests"

requests: setup ## Compare the service with a reference under many random requests; ROUNDS=2000 SEED=7
	swift build --build-tests
	WATERSHED_SEED=$(or $(SEED),$(shell date +%s)) WATERSHED_REQUESTS=$(or $(ROUNDS),2000) swift test --skip-build --disable-xctest --filter "RandomRequestTests"

simulate: setup ## Play simulated worlds; ARGS="--minutes 5 --tables" or ARGS="--seed 7"
	@WATERSHED_WITHOUT_FIXTURES=1 swift run -c debug watershed simulate $(ARGS)

lint: ## Check format and habits
	swift format lint --strict --parallel --recursive $(SWIFT_PATHS)
	@scripts/tidy

format: ## Format every Swift file
	swift format --in-place --parallel --recursive $(SWIFT_PATHS)

bench: setup ## Measure against raw limits in the same run; ARGS picks benchmarks
	WATERSHED_BENCHMARKS=1 WATERSHED_WITHOUT_FIXTURES=1 swift run -c release --scratch-path .build-bench benchmarks $(ARGS)

release: setup ## Write dist/: tarball, Debian package, container image, digests, bill of materials
	@scripts/release

test-readme: ## Run the README's first ten minutes on a minimal Debian with a toolchain (needs root)
	@scripts/test-readme

test-release: ## Install what dist/ has on a minimal Debian and use it (needs root); PREVIOUS=FILE.deb
	@scripts/test-release

api-diff: setup ## List breaking changes of the libraries since the last tag; SINCE=COMMIT for another, PRODUCTS="CoreData"
	@scripts/api-diff "$(SINCE)" $(PRODUCTS)

startup: ## Measure how fast commands and the server start; BINARY=FILE, a release build
	@python3 Benchmarks/startup.py $(or $(BINARY),.build-release/release/watershed)

docs: setup ## Write the API documentation to .build/docs
	@scripts/docs

coverage: setup ## Rewrite Documentation/Coverage.md (needs WATERSHED_SHARED)
	@scripts/coverage

limits: setup ## Rewrite Documentation/Limits.md from ServiceLimits
	WATERSHED_WRITE_LIMITS=1 swift test --disable-xctest --filter LimitsPageTests

handbook: setup ## Rewrite the tables of Documentation/Operating that are made of the source
	WATERSHED_WRITE_HANDBOOK=1 swift test --disable-xctest --filter 'ConfigurationPageTests|MessagesPageTests'

differences: ## Rewrite Documentation/Differences.md from the doc comments
	scripts/differences >Documentation/Differences.md

clean: ## Remove what was built
	swift package clean
