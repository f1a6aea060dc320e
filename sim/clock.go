package sim

import "container/heap"

// Virtual time, in microseconds.
const (
	millisecond = 1000
	second      = 1000 * millisecond
)

// timer is one event to come.
type timer struct {
	at  int64
	seq uint64 // breaks ties: what was planned first happens first
	run func()
}

type timers []timer

func (t timers) Len() int { return len(t) }
func (t timers) Less(i, j int) bool {
	return t[i].at < t[j].at || t[i].at == t[j].at && t[i].seq < t[j].seq
}
func (t timers) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)   { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any {
	old := *t
	x := old[len(old)-1]
	old[len(old)-1] = timer{}
	*t = old[:len(old)-1]
	return x
}

// after plans run for delay microseconds from now.
func (w *world) after(delay int64, run func()) {
	w.planned++
	heap.Push(&w.timers, timer{w.now + max(delay, 0), w.planned, run})
}

// step runs the next event, and reports false if there is none before until.
func (w *world) step(until int64) bool {
	if len(w.timers) == 0 || w.timers[0].at > until {
		w.now = until
		return false
	}
	t := heap.Pop(&w.timers).(timer)
	w.now = t.at
	w.events++
	t.run()
	return true
}
