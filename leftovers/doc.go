// Package leftovers gives back what a test took from the machine: mounts,
// network namespaces, links, control groups, directories, processes.
//
// Each is written into a ledger before it is taken, so that a process that is killed
// leaves a list behind it. The next one to open a ledger of the same kind
// returns what the dead one listed, and nothing else: a living process holds a
// lock on its ledger, and what stands in no ledger is not ours.
package leftovers
