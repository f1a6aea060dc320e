// Package metrics holds every metric name, label value and bucket of Holdfast.
//
// A process makes the sets it needs, [NewProcess], [NewAcceptor],
// [NewProposer], [NewBridge], on a registerer of its own choosing; nothing is
// global and nothing registers itself. A nil registerer makes a set that works
// and is not exposed. Names of different sets never meet, so one registry may hold all.
//
// What happens often is counted where it happens: the fields of a set are
// typed, their label values are resolved beforehand, and counting and
// observing allocate nothing. What is a position or a level is asked for when
// somebody scrapes: see [AcceptorState] and [BridgeState].
//
// Conventions: prefix holdfast_; seconds and bytes; _total on counters only;
// labels from small closed sets, never a tenant, an address or the text of an
// error. LSNs are gauges in bytes. docs/metrics.md lists everything; a test
// keeps it in step.
package metrics
