// Package quorum is the bridge's view of the acceptors: it opens the log for
// the bridge that writes it (ingest.Elector), and it says, with the answers of
// a majority, where the log ends and what PostgreSQL cluster it belongs to, for
// those that serve it to standbys and restore it.
package quorum
