# make demo                  build, measure between two processes, show table and plot
# make test                  every test and check; ends with "N passed, N failed"
# make bench                 the performance table, with a verdict for each row
# make fuzz SECONDS=n         look for inputs that break parsers or engine; the corpus is part of make test
# make install PREFIX=DIR    library, headers, cci.pc, and the command cci
# make deny                  licences, advisories and sources of the dependencies (needs cargo-deny)

SHELL := /bin/sh
export PATH := $(PATH):$(HOME)/.cargo/bin

PREFIX ?= /usr/local
SECONDS ?= 60
DESTDIR ?=
TARGET := $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)
CCI := $(TARGET)/release/cci

.PHONY: all prepare build demo test bench fuzz install deny clean

all: build

prepare:
	@ci/prepare

build: prepare
	cargo build --locked --release --workspace

demo: prepare
	cargo build --locked --release -p cci-cli
	@mkdir -p demo-out
	$(CCI) perf pingpong --local --transport sm --plot demo-out/latency.svg
	@echo "plot: demo-out/latency.svg"

test: prepare
	@ci/test

# One row goes through the C library, which lies beside the command.
bench: prepare
	cargo build --locked --release -p cci-cli -p cci-c
	$(CCI) bench

fuzz: prepare
	@ci/fuzz $(SECONDS)

install: prepare
	cargo build --locked --release -p cci-c -p cci-cli
	DESTDIR="$(DESTDIR)" bindings/c/install.sh "$(TARGET)/release" "$(PREFIX)"
	install -d "$(DESTDIR)$(PREFIX)/bin"
	install -m 755 $(CCI) "$(DESTDIR)$(PREFIX)/bin/cci"

deny:
	cargo deny check

clean:
	cargo clean
	rm -rf demo-out
