// Package check holds the tests that need the real thing: three acceptor
// processes of the binary itself, killed and restarted, and what they promise
// seen from outside. Each test begins with what a user would lose if it failed.
//
// "go test ./..." runs a short form of each. HOLDFAST_CHECK=long runs them for
// longer; HOLDFAST_CHECK_RACE=1 runs acceptors and clients with the race
// detector. A test whose tools or data are missing skips; with CI=true it fails.
package check
