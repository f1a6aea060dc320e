package vfs

import (
	"math/bits"
	"strings"
)

// Op is a set of operations of an FS and its files.
type Op uint32

const (
	OpCreate Op = 1 << iota
	OpOpen
	OpOpenRead
	OpRename
	OpRemove
	OpMkdirAll
	OpReadDir
	OpSyncDir
	OpLock
	OpFreeBytes
	OpReadAt
	OpReadAtUncached
	OpWriteAt
	OpWritevAt
	OpDatasync
	OpSize
	OpClose // of a file or a lock
	opEnd

	// OpAll is every operation.
	OpAll = opEnd - 1
	// OpReads read a file's content.
	OpReads = OpReadAt | OpReadAtUncached
	// OpWrites write a file's content.
	OpWrites = OpWriteAt | OpWritevAt
	// OpOpens take a file descriptor that the caller keeps.
	OpOpens = OpCreate | OpOpen | OpOpenRead | OpLock
	// OpNames change a directory (Lock does when the file is missing).
	OpNames = OpCreate | OpRename | OpRemove | OpMkdirAll | OpLock
	// OpMutating change what a crash leaves: content, names, or their durability.
	OpMutating = OpWrites | OpNames | OpDatasync | OpSyncDir
)

var opNames = [...]string{
	"Create", "Open", "OpenRead", "Rename", "Remove", "MkdirAll", "ReadDir", "SyncDir", "Lock", "FreeBytes",
	"ReadAt", "ReadAtUncached", "WriteAt", "WritevAt", "Datasync", "Size", "Close",
}

// String is the names of the operations, joined by "|".
func (o Op) String() string {
	var names []string
	for i, name := range opNames {
		if o&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "|")
}

// index is the number of a single operation, from 0.
func (o Op) index() int { return bits.TrailingZeros32(uint32(o)) }
