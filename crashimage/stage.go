package crashimage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed7f3f3bb8/holdfast/blockdev"
	"github.com/seed7f3f3bb8/holdfast/fleet"
	"github.com/seed7f3f3bb8/holdfast/leftovers"
)

// stage is an acceptor process on ext4 on a disk that records.
type stage struct {
	ledger *leftovers.Ledger
	dir    string
	disk   *blockdev.Disk
	ext4   *blockdev.Ext4
	fleet  *fleet.Fleet
	node   *fleet.Node
}

// diskBytes holds a run's segments and the spares; an image is a copy of it.
const diskBytes = 64 << 20

// newStage begins with an empty file system, whose disk records.
func newStage(ctx context.Context, ledger *leftovers.Ledger, binary string, args ...string) (*stage, error) {
	dir, err := os.MkdirTemp("", "holdfast-crashimage-")
	if err != nil {
		return nil, err
	}
	if err := ledger.Take(leftovers.Dir, dir); err != nil {
		return nil, err
	}
	s := &stage{ledger: ledger, dir: dir}
	if err := s.start(ctx, binary, args); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *stage) start(ctx context.Context, binary string, args []string) error {
	raw, data := filepath.Join(s.dir, "raw"), filepath.Join(s.dir, "node-1") // where fleet puts its first node
	if err := errors.Join(os.Mkdir(raw, 0o700), os.Mkdir(data, 0o700)); err != nil {
		return err
	}
	var err error
	if s.disk, err = blockdev.Start(s.ledger, raw, diskBytes); err != nil {
		return err
	}
	if err = blockdev.MakeExt4(s.disk.Device()); err != nil {
		return err
	}
	if s.ext4, err = blockdev.MountExt4(s.ledger, s.disk.Device(), data); err != nil {
		return err
	}
	s.disk.Record()
	if s.fleet, err = fleet.Start(ctx, fleet.Config{Binary: binary, Dir: s.dir, Nodes: 1, Args: args}); err != nil {
		return fmt.Errorf("the acceptor does not start: %w", err)
	}
	s.node = s.fleet.Nodes[0]
	return nil
}

// close ends the process and takes everything apart.
func (s *stage) close() error {
	var err error
	if s.fleet != nil {
		s.fleet.Kill()
	}
	if s.ext4 != nil {
		err = errors.Join(err, s.ext4.Unmount())
	}
	if s.disk != nil {
		err = errors.Join(err, s.disk.Close())
	}
	return errors.Join(err, s.ledger.Return(leftovers.Dir, s.dir))
}
