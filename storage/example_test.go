package storage_test

import (
	"fmt"
	"io"
	"log"

	"github.com/seed7f3f3bb8/holdfast/storage"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// The life of a log: created, opened, written, read back.
func Example() {
	cfg := storage.Config{FS: vfs.NewMem(), Dir: "data/prod/main"}
	if err := cfg.FS.MkdirAll("data"); err != nil {
		log.Fatal(err)
	}
	if err := storage.Create(cfg, wal.State{Creation: wal.CreationID{1}, FirstLSN: 0x1000000, Commit: 0x1000000, Horizon: 0x1000000}); err != nil {
		log.Fatal(err)
	}
	l, err := storage.Open(cfg)
	if err != nil {
		log.Fatal(err)
	}
	if err := l.Prepare(); err != nil { // in production: in the background
		log.Fatal(err)
	}

	data := []byte("a transaction")
	chunk := wal.Chunk{Begin: l.WriteLSN(), CRC: wal.Checksum(data), Data: data}
	if l.Space(1, len(data)) != wal.SpaceOpen {
		log.Fatal("no space")
	}
	if err := l.Append(1, l.State().Commit, []wal.Chunk{chunk}, false); err != nil {
		log.Fatal(err)
	}
	if err := l.Sync(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("durable up to", l.FlushLSN())

	r := l.NewReader(l.OldestLSN())
	for {
		f, err := r.Next(l.FlushLSN())
		if err == io.EOF {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("term %d wrote %q at %v\n", f.Term, f.Chunk.Data, f.Chunk.Begin)
	}
	_ = r.Close()

	st := l.State()
	st.Commit = l.FlushLSN()
	if err := l.Close(&st); err != nil { // with a quiet state frame
		log.Fatal(err)
	}
	l, err = storage.Open(cfg)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("opened again, committed up to", l.State().Commit)
	_ = l.Close(nil)
	// Output:
	// durable up to 0/100000D
	// term 1 wrote "a transaction" at 0/1000000
	// opened again, committed up to 0/100000D
}
