package vfs

import "errors"

// ErrLocked is what FS.Lock returns when another process holds the lock.
var ErrLocked = errors.New("locked by another process")
