// Command mutation measures the tests: it applies each fault of the directory
// mutants to a copy of the source, runs the proof lanes on it, and reports
// which lane noticed. A fault that no lane notices is a hole in the tests.
//
//	go run ./mutation                     every mutant, until a lane kills it
//	go run ./mutation -only canary        one; the check that the lanes run at all
//	go run ./mutation -table docs/evidence.md   and write the table there
package main
