// Package system tests the bridge's rooms together: a real PostgreSQL, three
// real acceptors in processes of their own, the bridge in one more, and each of
// them killed when a test wants it. It has no code of its own.
package system
