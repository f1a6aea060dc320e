package blockdev

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/seed7f3f3bb8/holdfast/leftovers"
)

// Ext4 is an ext4 file system mounted from a block device.
type Ext4 struct {
	Dir    string
	device string
	loop   *loop // of an image; nil if the device is somebody else's
	ledger *leftovers.Ledger
}

// MakeExt4 makes a file system with the smallest journal, so that the journal wraps often.
func MakeExt4(device string) error {
	return run("mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0", "-J", "size=4", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", device)
}

// MountExt4 mounts a device at dir, which must exist.
func MountExt4(ledger *leftovers.Ledger, device, dir string) (*Ext4, error) {
	if err := ledger.Take(leftovers.Mount, dir); err != nil {
		return nil, err
	}
	if err := unix.Mount(device, dir, "ext4", unix.MS_NOATIME, ""); err != nil {
		return nil, errors.Join(fmt.Errorf("mount %s as ext4 at %s: %w", device, dir, err), ledger.Return(leftovers.Mount, dir))
	}
	return &Ext4{Dir: dir, device: device, ledger: ledger}, nil
}

// MountImage mounts a file that holds an ext4 file system at dir, which must exist.
func MountImage(ledger *leftovers.Ledger, file, dir string) (*Ext4, error) {
	l, err := attach(file)
	if err != nil {
		return nil, err
	}
	m, err := MountExt4(ledger, l.path, dir)
	if err != nil {
		return nil, errors.Join(err, l.detach())
	}
	m.loop = l
	return m, nil
}

// Unmount unmounts it, and detaches an image.
func (m *Ext4) Unmount() error {
	err := m.ledger.Return(leftovers.Mount, m.Dir)
	if m.loop != nil {
		err = errors.Join(err, m.loop.detach())
	}
	return err
}
