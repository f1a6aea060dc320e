#!/bin/sh
# The table of floor, Holdfast and, on request, peers: interleaved rounds, medians, spread, ratios.
#
#   bench/compare.sh                                    # all cells, three rounds: about 15 minutes
#   P=128 C=64 ROUNDS=5 T=3s bench/compare.sh
#   PEERS=/path/to/peers SYSTEMS=dragonboat,hcraft bench/compare.sh
#   bench/compare.sh --max-batch-requests 1             # what is left goes to the acceptors
#
# DIR says where data goes: a directory on the disk to be measured. OUT keeps the JSON lines.
set -eu
cd "$(dirname "$0")/.."
BIN=$(mktemp -d)
trap 'rm -rf "$BIN"' EXIT INT TERM
CGO_ENABLED=0 go build -o "$BIN/holdfast" ./cmd/holdfast
CGO_ENABLED=0 go build -o "$BIN/bench" ./bench
"$BIN/bench" compare -holdfast "$BIN/holdfast" -rounds "${ROUNDS:-3}" \
	-P "${P:-128,8192,65536}" -C "${C:-1,64,256}" -T "${T:-6s}" -warm "${WARM:-2s}" -dir "${DIR:-}" \
	-peers "${PEERS:-}" -systems "${SYSTEMS:-dragonboat,hcraft}" -o "${OUT:-}" -- "$@"
