// Package cli is how every holdfast command talks to a person and to a script.
//
// Results go to standard output, everything else to standard error. A setting
// is taken from the command line, else from the environment, else from the
// configuration file, else from its default ([Settings]), and each value knows
// where it came from. What went wrong decides the exit code ([Code]). Sizes,
// durations and positions are written with units. Colour and live progress
// exist only on a terminal; a destructive command asks there and needs --yes
// everywhere else.
//
// The package knows nothing of acceptors, proposers or gRPC.
package cli
