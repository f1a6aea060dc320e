package proposer_test

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/seed7f3f3bb8/holdfast/proposer"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// One writer appends, waits until a majority has made it durable, and reads it
// back. The three acceptors are fakes in memory here, which is what the
// DialOptions are for; with real ones Acceptors and Timeline are enough.
func Example() {
	fakes := newCluster(nil, 3)
	defer fakes.stop()
	ctx := context.Background()

	p, err := proposer.Open(ctx, proposer.Config{
		Acceptors:   []string{"node1", "node2", "node3"},
		Timeline:    wal.TimelineID{Tenant: "test", Timeline: "main"},
		DialOptions: fakes.config().DialOptions,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	begin, end, err := p.Append(ctx, []byte("a change worth keeping"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("placed at [%v, %v)\n", begin, end)
	if err := p.Wait(ctx, end); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("committed:", p.Commit() >= end)
	p.Close()

	r, err := proposer.NewReader(ctx, proposer.ReaderConfig{
		Acceptors:   []string{"node1", "node2", "node3"},
		Timeline:    wal.TimelineID{Tenant: "test", Timeline: "main"},
		Begin:       begin,
		DialOptions: fakes.config().DialOptions,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	for {
		chunk, err := r.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("read %q at %v, written in term %d\n", chunk.Data, chunk.Begin, chunk.Term)
	}
	// Output:
	// placed at [0/1000000, 0/1000016)
	// committed: true
	// read "a change worth keeping" at 0/1000000, written in term 1
}

// A writer that is told that another one has taken over must stop: what it
// acknowledged is safe, what it has not heard of may or may not be there.
func ExampleProposer_Wait() {
	fakes := newCluster(nil, 3)
	defer fakes.stop()
	ctx := context.Background()
	p, err := proposer.Open(ctx, fakes.config())
	if err != nil {
		fmt.Println(err)
		return
	}
	_, end, _ := p.Append(ctx, []byte("mine"))
	fmt.Println(p.Wait(ctx, end))

	other, err := proposer.Open(ctx, fakes.config())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer other.Close()
	_, end, _ = other.Append(ctx, []byte("theirs"))
	fmt.Println(other.Wait(ctx, end))

	<-p.Done()
	var fenced *proposer.FencedError
	if errors.As(p.Err(), &fenced) {
		fmt.Println("another writer won:", fenced.Term > fenced.Own)
	}
	fmt.Println(p.Close())
	// Output:
	// <nil>
	// <nil>
	// another writer won: true
	// <nil>
}
