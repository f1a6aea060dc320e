package blockdev

import (
	"context"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// fileName is the only file of the file system.
const fileName = "disk"

const requestBytesMax = 1 << 20

// serve mounts a file system with one file, the disk, at dir.
func serve(d *Disk, dir string) (*fuse.Server, error) {
	never := time.Duration(0)
	return fs.Mount(dir, &folder{disk: d}, &fs.Options{
		AttrTimeout: &never, EntryTimeout: &never,
		MountOptions: fuse.MountOptions{FsName: "holdfast-blockdev", DirectMountStrict: true, MaxWrite: requestBytesMax},
	})
}

// folder is the root directory.
type folder struct {
	fs.Inode
	disk *Disk
}

var _ fs.NodeOnAdder = (*folder)(nil)

func (f *folder) OnAdd(ctx context.Context) {
	f.AddChild(fileName, f.NewPersistentInode(ctx, &file{disk: f.disk}, fs.StableAttr{Mode: fuse.S_IFREG}), true)
}

// file is the disk. It is opened for direct I/O, so that the kernel keeps no
// page of it: a write to the device is a call here, and so is a flush.
type file struct {
	fs.Inode
	disk *Disk
}

var (
	_ fs.NodeOpener    = (*file)(nil)
	_ fs.NodeGetattrer = (*file)(nil)
	_ fs.NodeSetattrer = (*file)(nil)
	_ fs.NodeReader    = (*file)(nil)
	_ fs.NodeWriter    = (*file)(nil)
	_ fs.NodeFsyncer   = (*file)(nil)
	_ fs.NodeAllocater = (*file)(nil)
)

func (f *file) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO, 0
}

func (f *file) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode = fuse.S_IFREG | 0o600
	out.Size = uint64(f.disk.size())
	out.Blksize = 4096
	return 0
}

func (f *file) Setattr(ctx context.Context, h fs.FileHandle, _ *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	return f.Getattr(ctx, h, out)
}

func (f *file) Read(_ context.Context, _ fs.FileHandle, p []byte, at int64) (fuse.ReadResult, syscall.Errno) {
	return fuse.ReadResultData(p[:f.disk.read(p, at)]), 0
}

func (f *file) Write(_ context.Context, _ fs.FileHandle, data []byte, at int64) (uint32, syscall.Errno) {
	if e := f.disk.store(data, at, len(data)); e != 0 {
		return 0, e
	}
	return uint32(len(data)), 0
}

func (f *file) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno { return f.disk.flush() }

// Allocate is how the loop device discards and writes zeros: after either, zeros are read.
func (f *file) Allocate(_ context.Context, _ fs.FileHandle, at, n uint64, _ uint32) syscall.Errno {
	if at+n < at || at+n > uint64(f.disk.size()) {
		return syscall.EINVAL
	}
	return f.disk.store(nil, int64(at), int(n))
}
