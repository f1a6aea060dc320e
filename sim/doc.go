// Package sim runs the real rooms in a world that is made from one number.
//
// A world has three or five acceptors, each the real [flush.Loop] and
// consensus core over the real storage on a simulated disk, up to three
// proposers with the real core, readers, and a network between them. One
// goroutine takes one event at a time from a queue ordered by virtual time;
// chance comes from the seed alone, so a seed is a run, and the same seed is
// the same run for ever.
//
// Beside what the rooms do, the world keeps its own books: what every disk was
// told to hold, what was acknowledged, which bytes were committed. The
// invariants of docs/evidence.md are asserted from these books after every
// event. At the end everything is healed, and what must then happen must happen.
//
// What is done to a world (appends, power cuts, disk faults, cuts of the
// network) is a script drawn from the seed before it starts. A failing script
// is shortened, step by step, to one that still fails in the same way.
package sim
