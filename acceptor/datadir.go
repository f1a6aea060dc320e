package acceptor

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/seed7f3f3bb8/holdfast/storage"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Names in a data directory that are no tenants: a tenant's has neither dots
// nor capitals.
const (
	lockName   = "LOCK"
	nodeIDName = "node.id"
	spareName  = "spare.d"
)

// dataDir is a data directory that this process has locked.
type dataDir struct {
	fs   vfs.FS
	dir  string
	lock io.Closer
}

// openDataDir makes the directory if it is missing, locks it, and makes sure
// that it belongs to node.
func openDataDir(fsys vfs.FS, dir string, node wal.NodeID) (*dataDir, error) {
	if err := fsys.MkdirAll(dir); err != nil {
		return nil, err
	}
	lock, err := fsys.Lock(path.Join(dir, lockName))
	if errors.Is(err, vfs.ErrLocked) {
		return nil, fmt.Errorf("data directory %s is in use by another process: %w", dir, err)
	}
	if err != nil {
		return nil, err
	}
	d := &dataDir{fsys, dir, lock}
	if err := d.claim(node); err != nil {
		_ = lock.Close() // the cause is err
		return nil, err
	}
	return d, nil
}

// claim writes node's id into a new directory and compares it in an old one. A
// disk that comes up under another node's id would count twice in a quorum.
func (d *dataDir) claim(node wal.NodeID) error {
	name := path.Join(d.dir, nodeIDName)
	text, err := readSmall(d.fs, name)
	if err == nil {
		found, parseErr := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
		if parseErr != nil || found == 0 {
			return fmt.Errorf("%s does not hold a node id but %q", name, text)
		}
		if wal.NodeID(found) != node {
			return fmt.Errorf("data directory %s belongs to node %d, this is node %d: a node never uses another's disk", d.dir, found, node)
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	tenants, err := d.tenants()
	if err != nil {
		return err
	}
	if len(tenants) > 0 {
		return fmt.Errorf("data directory %s holds timelines (tenant %s) but no %s: which node they belong to cannot be told; restore the file, one line with the id, if you know", d.dir, tenants[0], nodeIDName)
	}
	return writeSmall(d.fs, d.dir, nodeIDName, strconv.FormatUint(uint64(node), 10)+"\n")
}

// tenants lists the directories that are named like tenants.
func (d *dataDir) tenants() ([]string, error) {
	return labels(d.fs, d.dir)
}

// labels lists, in order, the directories in dir whose names can be part of a timeline's.
func labels(fsys vfs.FS, dir string) ([]string, error) {
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.Dir && (wal.TimelineID{Tenant: e.Name, Timeline: "x"}).Validate() == nil {
			names = append(names, e.Name)
		}
	}
	return names, nil
}

// timelines finishes what a crash interrupted and lists what is here, in
// order, and which timelines have a copy for reading only. It opens none.
func (d *dataDir) timelines() (ids, filled []wal.TimelineID, _ error) {
	tenants, err := d.tenants()
	if err != nil {
		return nil, nil, err
	}
	for _, tenant := range tenants {
		dir := path.Join(d.dir, tenant)
		if err := storage.Sweep(d.fs, dir); err != nil {
			return nil, nil, err
		}
		names, err := labels(d.fs, dir)
		if err != nil {
			return nil, nil, err
		}
		for _, name := range names {
			ids = append(ids, wal.TimelineID{Tenant: tenant, Timeline: name})
		}
		more, err := d.filled(tenant, dir)
		if err != nil {
			return nil, nil, err
		}
		filled = append(filled, more...)
	}
	return ids, filled, nil
}

// of is the directory of a timeline, whose id was checked.
func (d *dataDir) of(id wal.TimelineID) string { return path.Join(d.dir, id.Tenant, id.Timeline) }

func (d *dataDir) close() error { return d.lock.Close() }

func readSmall(fsys vfs.FS, name string) (string, error) {
	f, err := fsys.OpenRead(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b := make([]byte, 64)
	n, err := f.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return "", err
	}
	return string(b[:n]), nil
}

// writeSmall makes a file that is there complete or not at all.
func writeSmall(fsys vfs.FS, dir, name, text string) error {
	tmp := path.Join(dir, name+".tmp")
	if err := fsys.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := fsys.Create(tmp)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(text), 0)
	if err == nil {
		err = f.Datasync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(tmp, path.Join(dir, name)); err != nil {
		return err
	}
	return fsys.SyncDir(dir)
}
