// Package nemesis breaks things under a real Holdfast and judges what its
// clients were told. Three acceptor processes run each on a disk of its own and, where the
// machine allows, in a network namespace of its own; client processes append
// through the proposer library and write down every call and every answer before they
// act on it. A schedule from a seed kills, pauses, cuts off, delays, starves
// and damages them (faults*.go). At the end of each round everything is healed, and then:
//
//   - the log must go on: an append is acknowledged within a bounded time;
//   - every acknowledged append is there, byte for byte, on every acceptor whose
//     disk was left alone, and all of those are identical (package workload's audit);
//   - the calls of all clients are linearizable as an append-only log (Porcupine);
//   - every read of any acceptor, at any time, was a prefix of that log;
//   - every acceptor answers, within its limits, and none ended by itself.
//
// A run that did too little proves nothing and fails as vacuous: fewer than
// 10,000 acknowledged appends, or a kind of fault that should bring a new
// leader and never did.
//
// With root, disks are blockdev's and networks are namespaces; without, data is
// in plain directories and every connection goes through a proxy that can
// be told to hold back bytes. What a machine cannot do is left out and said.
package nemesis
