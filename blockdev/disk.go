package blockdev

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/seed7f3f3bb8/holdfast/leftovers"
)

// SectorBytes is what a disk writes as a whole or not at all.
const SectorBytes = 512

// Disk is a block device in memory. Its methods are safe for concurrent use.
type Disk struct {
	ledger *leftovers.Ledger
	dir    string // where the FUSE file system is mounted
	server *fuse.Server
	loop   *loop

	mu      sync.Mutex
	content []byte // what a read returns
	history *History
	fault   Fault
	undo    []write // what writes since the last flush replaced, while fault.FlushLoses
}

// Fault is what a disk does wrong from now on. The zero value is a good disk.
type Fault struct {
	WriteError syscall.Errno // a write fails with it and changes nothing
	FlushError syscall.Errno // a flush fails with it
	FlushTimes int           // only so many flushes; 0 for all
	FlushDelay time.Duration // a flush takes this much longer
	WriteDelay time.Duration // so does a write

	// FlushLoses makes a failed flush lose what was written since the last good
	// one: the disk holds the old bytes again, while the page cache shows the new ones.
	FlushLoses bool
}

type write struct {
	at   int64
	data []byte
}

// Start makes a disk of size bytes, all zero, and mounts its file at dir, which
// must exist. Device says which block device it is. Close takes it apart.
func Start(ledger *leftovers.Ledger, dir string, size int64) (*Disk, error) {
	// Memory that was never written to costs nothing.
	content, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("memory for a disk of %d bytes: %w", size, err)
	}
	d := &Disk{ledger: ledger, dir: dir, content: content}
	if err := ledger.Take(leftovers.Mount, dir); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	if d.server, err = serve(d, dir); err != nil {
		return nil, errors.Join(fmt.Errorf("FUSE at %s: %w", dir, err), d.Close())
	}
	if d.loop, err = attach(dir + "/" + fileName); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Device is the path of the block device.
func (d *Disk) Device() string { return d.loop.path }

// Close detaches the device and unmounts its file. Whatever is mounted from
// the device must have been unmounted. It may be called more than once.
func (d *Disk) Close() error {
	var err error
	if d.loop != nil {
		err = d.loop.detach()
		d.loop = nil
	}
	if d.server != nil {
		err = errors.Join(err, d.ledger.Return(leftovers.Mount, d.dir))
		d.server.Wait()
		d.server = nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.content != nil {
		err = errors.Join(err, unix.Munmap(d.content))
		d.content = nil
	}
	return err
}

// SetFault replaces what the disk does wrong.
func (d *Disk) SetFault(f Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f.FlushLoses && !d.fault.FlushLoses {
		d.undo = nil
	}
	d.fault = f
}

// Record begins to remember: what the disk holds now is where the history begins.
func (d *Disk) Record() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.history = &History{Base: append([]byte(nil), d.content...)}
}

// Mark puts a note at this moment of the history: whatever made the caller
// write it had happened by then. It does nothing while nothing is recorded.
func (d *Disk) Mark(note any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.history != nil {
		d.history.Events = append(d.history.Events, Event{Kind: Note, Note: note})
	}
}

// Stop ends the recording and returns it, nil if there was none.
func (d *Disk) Stop() *History {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.history
	d.history = nil
	return h
}

func (d *Disk) size() int64 { return int64(len(d.content)) }

func (d *Disk) read(p []byte, at int64) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at < 0 || at >= d.size() {
		return 0
	}
	return copy(p, d.content[at:])
}

// store performs a write; data nil writes n zeros.
func (d *Disk) store(data []byte, at int64, n int) syscall.Errno {
	d.mu.Lock()
	delay := d.fault.WriteDelay
	d.mu.Unlock()
	if delay > 0 {
		time.Sleep(delay)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fault.WriteError != 0 {
		return d.fault.WriteError
	}
	if at < 0 || at > d.size() || int64(n) > d.size()-at {
		return syscall.ENOSPC
	}
	if d.fault.FlushLoses {
		d.undo = append(d.undo, write{at, append([]byte(nil), d.content[at:at+int64(n)]...)})
	}
	if data == nil {
		clear(d.content[at : at+int64(n)])
	} else {
		copy(d.content[at:], data)
	}
	if d.history != nil {
		d.history.Events = append(d.history.Events, Event{Kind: Write, At: at, Data: append([]byte(nil), d.content[at:at+int64(n)]...)})
	}
	return 0
}

// flush makes durable what was written before it began: that is, what stands
// in front of its event in the history.
func (d *Disk) flush() syscall.Errno {
	d.mu.Lock()
	delay := d.fault.FlushDelay
	d.mu.Unlock()
	if delay > 0 {
		time.Sleep(delay)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fault.FlushError != 0 {
		for i := len(d.undo) - 1; i >= 0; i-- {
			copy(d.content[d.undo[i].at:], d.undo[i].data)
		}
		d.undo = nil
		failed := d.fault.FlushError
		if d.fault.FlushTimes > 0 {
			if d.fault.FlushTimes--; d.fault.FlushTimes == 0 {
				d.fault.FlushError = 0
			}
		}
		return failed
	}
	d.undo = nil
	if d.history != nil {
		d.history.Events = append(d.history.Events, Event{Kind: Flush})
	}
	return 0
}

// Available tells why there can be no such disk on this machine, nil if there can.
func Available() error {
	if os.Geteuid() != 0 {
		return errors.New("block devices are for root only")
	}
	for _, name := range []string{"/dev/fuse", loopControl} {
		f, err := os.OpenFile(name, os.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		_ = f.Close()
	}
	return findTools()
}
