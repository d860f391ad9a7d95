# make demo                  build, measure between two processes, show table and plot
# make test                  every test and check; ends with "N passed, N failed"
# make bench                 the performance table, with a verdict for each row, and instructions of
#                            a call (needs valgrind)
# make report                measure everything quickly, beside the peers that are installed:
#                            report-out/report.html
# make compare               try `cci perf compare`: the same build 20 times, and one with 5 % more
#                            time in each send
# make net                   sock and tcp between network name spaces: loss, path MTU, firewalls,
#                            groups (part of make test)
# make fuzz SECONDS=n         look for inputs that break parsers, the engine, sealed connections or
#                             tcp; the corpus, and changes of it at random, are part of make test
# make attacks WORLDS=n       n simulated worlds, in each of which somebody on the path sends a
#                             hundred frames to sealed connections; a tenth is part of make test
# make calls CALLS=n         n random calls of each C library over each transport, with sanitizers
#                            (needs a nightly Rust); a few are part of make test
# make seeds N=n             n simulated worlds, each with another bad network; failing seeds are
#                            kept in tools/testkit/seeds.txt
# make soak SECONDS=n        as many simulated worlds as there is time for, from a seed that is
#                            another each time; the Split-C programs on up to 8 ranks; and a
#                            million puts of Portals that nobody wants
# make mpi                   programs of MPICH by cci run: 64 ranks, ten minutes without a call,
#                            five minutes stopped
# make jobs                  interrupt 100 parallel jobs, and start 32 ranks beside hydra, where
#                            that is installed
# make testbed               measure rings and tori of network name spaces, fit the model to some
#                            paths, validate it on the others
# make install PREFIX=DIR    library, headers, cci.pc, the commands cci and splitcc, and the older
#                            interfaces in C for pkg-config (amudp, ammpi, am, vipl, splitc,
#                            portals3, myriexpress, sisci), and the provider of libfabric in
#                            PREFIX/lib/cci/fabric; with PROFILE=profiling not stripped, for perf
#                            and gdb
# make wheel                 the Python package, in target/wheels: for CPython 3.11 and later, on
#                            Linux with glibc 2.28 or newer; a second wheel for python3.14t where
#                            that is found
# make mpi-wheel             the wheel libcci-mpi, in target/mpi: the command, and the provider of
#                            libfabric for MPIs of Python environments; uses it with mpich and mpi4py
# make deb                   Debian packages, in target/deb: libcci2, libcci-dev, cci, libcci-compat
# make archive               the sources with every dependency, in target/archive: builds without a
#                            network
# make book                  the pages as a book, in target/book/html, by mdbook
# make peers                 programs that measure other libraries beside CCI (`cci perf --peers`),
#                            as far as these are installed
# make peers-deps            installs the Debian packages of all of them
# make nightly               what takes too long for every change: Miri, sanitizers, 64-bit Arm,
#                            packages, ...; at most 120 minutes
# make release DRY=yes       what a release would do; without DRY: checks versions and tree, builds,
#                            tests, tags
# make deny                  licences, advisories and sources of the dependencies (needs cargo-deny)

SHELL := /bin/sh
export PATH := $(PATH):$(HOME)/.cargo/bin

PREFIX ?= /usr/local
PROFILE ?= release
N ?= 1000
CALLS ?= 100000
SECONDS ?= 60
WORLDS ?= 10000
DESTDIR ?=
COMMIT ?= $(shell git describe --always --dirty 2>/dev/null || echo unknown)
TARGET := $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)
CCI := $(TARGET)/release/cci

.PHONY: all prepare build demo test bench report compare net fuzz attacks calls seeds soak jobs testbed install wheel mpi-wheel deb archive book peers peers-deps nightly release deny clean

all: build

prepare:
	@ci/prepare

build: prepare
	cargo build --locked --release --workspace
	@mkdir -p $(TARGET)/fabric && ln -f $(TARGET)/release/libcci_fi.so $(TARGET)/fabric/libcci-fi.so

demo: prepare
	cargo build --locked --release -p cci-cli
	@mkdir -p demo-out
	$(CCI) perf pingpong --local --transport sm --accuracy 50% --plot demo-out/latency.svg
	@echo "plot: demo-out/latency.svg"

test: prepare
	@ci/test

# One row goes through the C library, which lies beside the command. All lines name the commit as
# it was before the first of them: a page that has been written is a change.
bench: prepare
	cargo build --locked --release -p cci-cli -p cci-c
	cargo build --locked --release -p cci-testkit --bin cci-simulated
	$(CCI) bench --page docs/performance.md --commit '$(COMMIT)'
	$(TARGET)/release/cci-simulated
	@if command -v valgrind >/dev/null; then \
		COMMIT='$(COMMIT)' ci/instructions --c docs/performance.md; \
	else \
		echo "instructions of a call over sm: skipped, because valgrind is missing (apt-get install valgrind)"; \
	fi

# Ends with a status other than 0 when a measurement gave nothing or ended early; the page says
# which.
report: prepare
	cargo build --locked --release -p cci-cli
	$(CCI) perf report --measure report-out --out report-out/report.html
	@echo "report: report-out/report.html"

compare: prepare
	cargo build --locked --release -p cci-cli -p cci-c
	@ci/compare

# The command and an example are some of the ends.
net: prepare
	cargo build --locked --release -p cci-cli -p cci-examples
	cargo test --locked --release -p cci-testkit --test net

fuzz: prepare
	@ci/fuzz $(SECONDS)

attacks: prepare
	CCI_SEALED_WORLDS=$(WORLDS) cargo test --locked -p cci-proto --lib tests::sealed::worlds

calls: prepare
	@ci/calls --calls $(CALLS)

seeds: prepare
	cargo run --locked --release -p cci-testkit --bin cci-seeds -- --seeds $(N) --keep tools/testkit/seeds.txt

soak: prepare
	cargo run --locked --release -p cci-testkit --bin cci-seeds -- --first $$(date +%s)000 --seconds $(SECONDS) --keep tools/testkit/seeds.txt
	CCI_SPLITC_RANKS=8 cargo test --locked --release -p cci-splitcc --test splitcc
	CCI_UNMATCHED=1000000 cargo test --locked --release -p cci-portals --test flood

# The time of 32 ranks counts from their start until each has the values of all.
mpi: prepare
	PIP_SECONDS=600 cargo test --locked -p cci-cli --test run_mpi -- --include-ignored

jobs: prepare
	cargo build --locked --release -p cci-cli
	CCI_INTERRUPTS=100 cargo test --locked --release -p cci-cli --test run
	@ci/jobs "$(CCI)"

# As root, or where users may make name spaces; nothing of it is left but the documents and tables
# in testbed-out.
testbed: prepare
	cargo build --locked --release -p cci-cli
	cargo build --locked --release -p cci-testbed
	$(TARGET)/release/cci-testbed --out testbed-out

install: prepare
	cargo build --locked --profile $(PROFILE) -p cci-c -p cci-am-c -p cci-vipl -p cci-portals3 -p cci-myriexpress -p cci-sisci -p cci-fabric-c -p cci-splitc-c -p cci-splitcc -p cci-cli
	DESTDIR="$(DESTDIR)" bindings/c/install.sh "$(TARGET)/$(PROFILE)" "$(PREFIX)"
	DESTDIR="$(DESTDIR)" bindings/am/install.sh "$(TARGET)/$(PROFILE)" "$(PREFIX)"
	DESTDIR="$(DESTDIR)" bindings/vipl/install.sh "$(TARGET)/$(PROFILE)" "$(PREFIX)"
	DESTDIR="$(DESTDIR)" bindings/splitc/install.sh "$(TARGET)/$(PROFILE)" "$(PREFIX)"
	DESTDIR="$(DESTDIR)" bindings/portals/install.sh "$(TARGET)/$(PROFILE)" "$(PREFIX)"
	DESTDIR="$(DESTDIR)" bindings/mx/install.sh "$(TARGET)/$(PROFILE)" "$(PREFIX)"
	DESTDIR="$(DESTDIR)" bindings/sci/install.sh "$(TARGET)/$(PROFILE)" "$(PREFIX)"
	DESTDIR="$(DESTDIR)" bindings/fabric/install.sh "$(TARGET)/$(PROFILE)" "$(PREFIX)"
	install -d "$(DESTDIR)$(PREFIX)/bin"
	install -m 755 "$(TARGET)/$(PROFILE)/cci" "$(TARGET)/$(PROFILE)/splitcc" "$(DESTDIR)$(PREFIX)/bin/"

wheel: prepare
	@bindings/python/wheel "$(TARGET)"

mpi-wheel: prepare
	@packages/mpi/build "$(TARGET)" && packages/mpi/check "$(TARGET)/mpi"

# lintian looks at the packages where it is installed.
deb: prepare
	cargo build --locked --release -p cci-c -p cci-am-c -p cci-vipl -p cci-portals3 -p cci-myriexpress -p cci-sisci -p cci-fabric-c -p cci-splitc-c -p cci-splitcc -p cci-cli -p cci-manual
	packages/deb/build "$(TARGET)/release" "$(TARGET)/deb"
	@if command -v lintian >/dev/null; then \
		lintian --fail-on error,warning "$(TARGET)"/deb/*.deb; \
	else \
		echo "lintian: skipped, because it is missing (apt-get install lintian)"; \
	fi

archive:
	packages/archive/build "$(TARGET)/archive"

book:
	@ci/book

# Beside the directories of debug and release, which both look there.
peers: prepare
	@tools/peers/build "$(TARGET)/peers"

peers-deps:
	apt-get update
	apt-get install -y --no-install-recommends $$(tools/peers/build --packages)

nightly: prepare
	@ci/nightly

release:
	@ci/release $(if $(DRY),--dry-run)

deny:
	cargo deny check

clean:
	cargo clean
	rm -rf demo-out report-out compare-out testbed-out
