package vfs

import "errors"

// ErrLocked is what FS.Lock returns when another process holds the lock.
var ErrLocked = errors.New("locked by another process")

// ErrCrashed is what every operation of a [Fault] returns after the one that it
// was told to crash behind.
var ErrCrashed = errors.New("crashed by fault injection")
