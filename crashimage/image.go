package crashimage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/seed7f3f3bb8/holdfast/blockdev"
	"github.com/seed7f3f3bb8/holdfast/leftovers"
)

// Failure is an image that breaks a promise.
type Failure struct {
	Seed    uint64 `json:"seed"`
	Event   int    `json:"event"` // the power failed before it
	Events  int    `json:"events"`
	Pull    string `json:"pull"`
	Pending int    `json:"pending_writes"`
	Broken  string `json:"broken"`
	Image   string `json:"image,omitempty"` // kept for a closer look
}

func (f Failure) String() string {
	return fmt.Sprintf("seed %d, power cut before event %d of %d, %s of %d pending writes: %s", f.Seed, f.Event, f.Events, f.Pull, f.Pending, f.Broken)
}

// goOnEvery image a node is run on one.
const goOnEvery = 4

// examine makes n images of what a recording may have left and audits each.
// lies is how many flushes the disk says it did and did not do: 0, but for the
// test that shows that a disk which lies is found out.
func examine(ctx context.Context, ledger *leftovers.Ledger, book *Book, h *blockdev.History, n, lies int, o *Options, report *Report) error {
	dir, err := os.MkdirTemp(memoryDir(), "holdfast-images-")
	if err != nil {
		return err
	}
	if err := ledger.Take(leftovers.Dir, dir); err != nil {
		return err
	}
	x := &bench{ctx: ctx, ledger: ledger, book: book, file: filepath.Join(dir, "image"), mnt: filepath.Join(dir, "mnt")}
	err = x.open(len(h.Base))
	if err == nil {
		err = x.all(h, n, lies, o, report)
	}
	return errors.Join(err, x.close(), ledger.Return(leftovers.Dir, dir))
}

// memoryDir is where images are made: in memory, if there is a place for it.
func memoryDir() string {
	const shm = "/dev/shm"
	if unix.Access(shm, unix.W_OK) == nil {
		return shm
	}
	return ""
}

// bench is where images are made, one after the other, in one file.
type bench struct {
	ctx    context.Context
	ledger *leftovers.Ledger
	book   *Book
	file   string
	image  []byte // the file, mapped
	mnt    string
}

func (x *bench) open(size int) error {
	f, err := os.OpenFile(x.file, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := errors.Join(f.Truncate(int64(size)), os.Mkdir(x.mnt, 0o700)); err != nil {
		return err
	}
	x.image, err = unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return err
}

func (x *bench) close() error {
	if x.image == nil {
		return nil
	}
	return unix.Munmap(x.image)
}

func (x *bench) all(h *blockdev.History, n, lies int, o *Options, report *Report) error {
	rng := rand.New(rand.NewPCG(x.book.Seed, 2))
	player := blockdev.NewPlayer(h)
	player.Lies = lies
	var promise Promise
	at := 0
	for i, point := range cutPoints(rng, h, n) {
		if err := x.ctx.Err(); err != nil {
			return err
		}
		for ; at < point; at++ {
			if e := &h.Events[at]; e.Kind == blockdev.Note {
				promise.add(e.Note)
			}
		}
		player.Seek(point)
		pull := Pull(rng.IntN(int(pulls)))
		pending := player.Pending()
		player.Image(x.image, pull.fates(rng, pending), func() bool { return rng.IntN(2) == 0 })
		report.Images++
		report.Pending += pending
		broken, err := x.judge(promise, i%goOnEvery == 0)
		if err != nil {
			return err
		}
		if broken == nil {
			continue
		}
		f := Failure{Seed: x.book.Seed, Event: point, Events: len(h.Events), Pull: pull.String(), Pending: pending, Broken: broken.Error()}
		if o.Keep != "" && len(report.Failures) < failuresMax {
			// The mount has replayed the journal in it: made again as it was.
			f.Image = filepath.Join(o.Keep, fmt.Sprintf("seed-%d-event-%d-%d.img", f.Seed, point, i))
			if err := os.WriteFile(f.Image, x.image, 0o600); err != nil {
				return err
			}
		}
		report.Failed++
		if len(report.Failures) < failuresMax {
			report.Failures = append(report.Failures, f)
		}
		if o.Log != nil {
			o.Log(f.String())
		}
	}
	return nil
}

// failuresMax bounds what is said about failures; all are counted.
const failuresMax = 20

// judge mounts the image and audits what is in it. broken is the verdict, err
// says that none could be found.
func (x *bench) judge(p Promise, further bool) (broken, err error) {
	m, err := blockdev.MountImage(x.ledger, x.file, x.mnt)
	if err != nil {
		// The file system itself keeps a promise here: it must always mount.
		return err, nil
	}
	r, broken := audit(x.mnt, x.book, p)
	if broken == nil && further && r != nil {
		broken = goOn(x.ctx, x.mnt, x.book, p, r)
	}
	return broken, m.Unmount()
}
