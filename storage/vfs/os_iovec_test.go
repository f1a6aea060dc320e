package vfs

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// unsafeBytes is the buffer that v points at.
func unsafeBytes(v unix.Iovec) []byte { return unsafe.Slice(v.Base, v.Len) }
