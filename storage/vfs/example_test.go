package vfs_test

import (
	"fmt"
	"log"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
)

// A file is as durable as the weaker of its content and its name.
func ExampleMem() {
	disk := vfs.NewMem()
	f, err := disk.Create("log")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if err := f.WritevAt([][]byte{[]byte("acknow"), []byte("ledged")}, 0); err != nil {
		log.Fatal(err)
	}
	if err := f.Datasync(); err != nil {
		log.Fatal(err)
	}
	show := func(when string) {
		entries, err := disk.CrashWorst().ReadDir("/")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(when, entries)
	}
	show("after Datasync:")
	if err := disk.SyncDir("/"); err != nil {
		log.Fatal(err)
	}
	show("after SyncDir: ")
	// Output:
	// after Datasync: []
	// after SyncDir:  [{log false 12}]
}

// The second fdatasync of the log fails, whatever the segment's name.
func ExampleFault() {
	disk := vfs.NewFault(vfs.NewMem())
	disk.Inject(vfs.Rule{Ops: vfs.OpDatasync, Name: "*.seg", Skip: 1, Times: 1, Effect: vfs.LoseSync{}})
	f, err := disk.Create("0000000000000001.seg")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for range 3 {
		fmt.Println(f.Datasync())
	}
	fmt.Println(disk.Count(vfs.OpDatasync), "syncs")
	// Output:
	// <nil>
	// fdatasync 0000000000000001.seg: input/output error
	// <nil>
	// 3 syncs
}
