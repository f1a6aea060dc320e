package main

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// While anything runs, Go's runtime has a thread that sleeps for 20 µs and looks
// around, and others that sleep for 3 µs when they find no work. The kernel rounds
// such sleeps up by the thread's timer slack, 50 µs unless told otherwise. With
// short bursts of work around every fdatasync those wake-ups took a third of all
// processor time; a millisecond of slack takes them away. What is late by it are
// timers of the process, none of which is shorter than two milliseconds.
//
// A thread hands its slack on to those that it starts, and the runtime's is
// started before main. But the slack of the thread that calls execve stays.
const timerSlack = time.Millisecond

// timerSlackMark says that this process has been executed for it, whatever came of it.
const timerSlackMark = "_HOLDFAST_TIMER_SLACK=set"

// busyCommands have an append path in them.
var busyCommands = []string{"acceptor", "bridge", "demo", "load"}

// relaxTimers executes the program again, with more timer slack, if it is to run
// a busy command. It returns if there is nothing to do or if it cannot.
func relaxTimers() {
	if !slices.ContainsFunc(os.Args[1:], func(a string) bool { return slices.Contains(busyCommands, a) }) {
		return
	}
	name, _, _ := strings.Cut(timerSlackMark, "=")
	if _, set := os.LookupEnv(name); set {
		_ = os.Unsetenv(name)
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	have, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil || have >= int(timerSlack) {
		return
	}
	if unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(timerSlack), 0, 0, 0) != nil {
		return
	}
	_ = unix.Exec("/proc/self/exe", os.Args, append(os.Environ(), timerSlackMark))
}
