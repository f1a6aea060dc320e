// Package workload drives a timeline and judges what came of it: load, the log
// of acknowledged appends, the audit that reads every one of them back from
// each acceptor's own disk, and PostgreSQL's segment files in and out.
//
// The commands, the demo, the tests and the benchmarks all drive and judge
// with this code, so what a user measures is what the project measures. Payloads come
// from a seed and a counter, so that an audit years later knows every byte
// that must be there without having kept one.
package workload
