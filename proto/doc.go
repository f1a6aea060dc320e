// Package proto is the wire: the protobuf definitions in holdfast/v1 and what
// stands between them and the rest of Holdfast.
//
// The wire is plain protobuf over plain gRPC, so a stock client in any
// language can speak it. Three things live here and no rule of the protocol:
//
//   - conversions, one message to a file, encode beside decode. Decoding
//     checks lengths, ids, histories and memberships, so what comes out may be
//     given to package consensus; what is wrong is an error, never a panic;
//   - [Status] and [FromStatus], which carry a consensus.Error through a gRPC status and back;
//   - [Codec], which reads and writes the two messages of the hot path without
//     the detour over generated structs and copies WAL bytes exactly once.
//
// Generated code is checked in. One command makes it again, with the tools
// pinned in tools/go.mod:
//
//	go generate ./proto
package proto

//go:generate sh -c "cd .. && go tool -modfile=tools/go.mod buf generate"
