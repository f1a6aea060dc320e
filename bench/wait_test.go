package main

import (
	"testing"

	"golang.org/x/sys/unix"
)

// The waiters of proposer and flush are made once and used again. These two show
// what that saves against making the kernel's wait object for every wait.

// BenchmarkWaitCached waits with one epoll instance and one eventfd.
func BenchmarkWaitCached(b *testing.B) {
	poll, event := waitObject(b)
	defer unix.Close(poll)
	defer unix.Close(event)
	b.ReportAllocs()
	for b.Loop() {
		waitOnce(b, poll, event)
	}
}

// BenchmarkWaitCreated makes and closes them, and a timer, each time.
func BenchmarkWaitCreated(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		poll, event := waitObject(b)
		timer, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, 0)
		if err != nil {
			b.Fatal(err)
		}
		if err := unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, timer, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(timer)}); err != nil {
			b.Fatal(err)
		}
		waitOnce(b, poll, event)
		_, _, _ = unix.Close(timer), unix.Close(event), unix.Close(poll)
	}
}

// BenchmarkWaitChannel is what is used here: a channel that is made once.
func BenchmarkWaitChannel(b *testing.B) {
	ready := make(chan struct{}, 1)
	b.ReportAllocs()
	for b.Loop() {
		ready <- struct{}{}
		<-ready
	}
}

func waitObject(b *testing.B) (poll, event int) {
	poll, err := unix.EpollCreate1(0)
	if err != nil {
		b.Fatal(err)
	}
	if event, err = unix.Eventfd(0, 0); err != nil {
		b.Fatal(err)
	}
	if err := unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, event, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(event)}); err != nil {
		b.Fatal(err)
	}
	return poll, event
}

func waitOnce(b *testing.B, poll, event int) {
	one := [8]byte{1}
	var events [2]unix.EpollEvent
	if _, err := unix.Write(event, one[:]); err != nil {
		b.Fatal(err)
	}
	if n, err := unix.EpollWait(poll, events[:], -1); n != 1 || err != nil {
		b.Fatal(n, err)
	}
	if _, err := unix.Read(event, one[:]); err != nil {
		b.Fatal(err)
	}
}
