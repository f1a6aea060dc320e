# The two commands that matter need no make: "go run ./cmd/holdfast demo" and "go test ./...".

GO ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo 0.1.0-dev)

.PHONY: proto-check all build test race lint fmt generate demo bench compare ci clean

all: lint test build

# One static binary.
build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-X main.version=$(VERSION)' -o bin/holdfast ./cmd/holdfast

test:
	$(GO) test ./...

# The race detector where there are goroutines. The pure rooms have none; the
# checks get a binary that has it (HOLDFAST_CHECK_RACE).
NO_GOROUTINES = /wal$$|/consensus|/proto/holdfast/|/sim|/check$$|/crashimage$$|/nemesis$$|/bench$$|holdfast$$
race:
	$(GO) test -race -short $$($(GO) list ./... | grep -vE '$(NO_GOROUTINES)')
	HOLDFAST_CHECK_RACE=1 $(GO) test -count=1 -run 'RealWAL|TwoProposers|StoppedAcceptor|KillEverything' ./check

# The linter is pinned in tools/go.mod, so that it never decides what the module depends on.
lint:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet ./...
	$(GO) tool -modfile=tools/go.mod staticcheck ./...

fmt:
	gofmt -w $$(git ls-files '*.go')

# Generated protobuf code is checked in; this makes it again.
generate:
	$(GO) generate ./proto/...

# Whether the checked-in protobuf code is what the .proto files give, and buf's lint.
proto-check:
	HOLDFAST_PROTO_CHECK=1 $(GO) test -count=1 -run TestGenerated ./proto

demo:
	$(GO) run ./cmd/holdfast demo

# Micro-benchmarks, in a form that benchstat reads: make bench BENCH=Append, benchstat old.out bench.out.
BENCH = .
bench:
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count 6 ./... | tee bench.out

# Floor and Holdfast side by side; bench/compare.sh says what else it can do.
compare:
	bench/compare.sh

ci:
	.ci/run

clean:
	rm -rf bin bench.out
