// Package pgwal is what the bridge must understand of PostgreSQL's WAL, and no
// more: segment files and their names, PostgreSQL's own timelines and their
// history files, what of these travels with a Holdfast election ([Properties]),
// and the rules that decide whether a PostgreSQL server may go on writing a log
// ([Judge]). It does no I/O; every type is a plain value.
//
// PostgreSQL's timelines are called TLIs here, to tell them from Holdfast's. A
// cluster's TLIs map onto one Holdfast timeline, one axis of bytes: each TLI
// keeps the bytes of its parent below the position where it began. PostgreSQL
// itself does so: a promotion at S copies the segment's bytes below S, old page
// headers included, into the new TLI's first segment file.
package pgwal
