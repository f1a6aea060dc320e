// Package walfetch restores WAL files from the acceptors: it is PostgreSQL's
// restore_command.
//
// PostgreSQL takes a failure with an exit status of 1 to 125 for "there is no
// such file", ends recovery there and goes on as a primary. So "absent" is said
// only when a majority of the acceptors proves it; every doubt (no majority, a
// disk error, a tail whose fate is open) is an error, for which the command
// exits with 255 and PostgreSQL stops.
//
// A log that a primary may still write has no end. Recovery to the end
// therefore needs a fenced log ("holdfast fence"), or a [Mode] that says what
// else is meant.
package walfetch
