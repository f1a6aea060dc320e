package nemesis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/proposer"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"github.com/seed7f3f3bb8/holdfast/workload"
)

// clientEnv, if it is set, makes a process that calls ClientMain a client.
const clientEnv = "HOLDFAST_NEMESIS_CLIENT"

// clientConfig says what a client process does. It travels as JSON in clientEnv.
type clientConfig struct {
	Acceptors []string
	Timeline  string
	Local     string // address to connect from
	History   string // file
	Seed      uint64
	Appenders int
	BytesMax  int
	Pause     time.Duration // of each appender behind each append, on average
}

// ClientMain returns at once unless this process was started to be a client;
// then it never returns. A program that runs nemeses calls it first.
func ClientMain() {
	text := os.Getenv(clientEnv)
	if text == "" {
		return
	}
	var c clientConfig
	err := json.Unmarshal([]byte(text), &c)
	if err == nil {
		err = runClient(&c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// lastCalls is how long calls that are on their way may take once the client is to leave.
const lastCalls = 2 * time.Second

// runClient appends until standard input ends.
func runClient(c *clientConfig) error {
	id, err := wal.ParseTimelineID(c.Timeline)
	if err != nil {
		return err
	}
	h, err := newRecorder(c.History)
	if err != nil {
		return err
	}
	h.add("w %016x", c.Seed)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	x := &clientProcess{c: c, id: id, h: h, payloads: workload.NewPayloads(c.Seed), leaving: make(chan struct{})}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(x.leaving)
		time.Sleep(lastCalls)
		cancel()
	}()
	var reads sync.WaitGroup
	readCtx, stopReads := context.WithCancel(ctx)
	reads.Go(func() { x.readAbout(readCtx) })
	for x.staying() {
		if err := x.lead(ctx); err != nil && x.staying() {
			fmt.Fprintln(os.Stderr, "client:", err)
		}
		select {
		case <-x.leaving:
		case <-time.After(time.Duration(50+rand.IntN(250)) * time.Millisecond):
		}
	}
	stopReads()
	reads.Wait()
	return nil
}

type clientProcess struct {
	c        *clientConfig
	id       wal.TimelineID
	h        *recorder
	payloads *workload.Payloads
	ops      atomic.Uint64
	leaving  chan struct{}
}

func (x *clientProcess) staying() bool {
	select {
	case <-x.leaving:
		return false
	default:
		return true
	}
}

// openWait bounds one attempt to win.
const openWait = 20 * time.Second

// lead wins the timeline and appends until it is lost or the client leaves.
func (x *clientProcess) lead(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(x.c.Local)}}
	opening, opened := context.WithTimeout(ctx, openWait)
	p, err := proposer.Open(opening, proposer.Config{
		Acceptors: x.c.Acceptors, Timeline: x.id, WindowBytes: 4 << 20,
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", addr)
		})},
	})
	opened()
	if err != nil {
		return err
	}
	x.h.add("e %d", now())
	var wg sync.WaitGroup
	for range x.c.Appenders {
		wg.Go(func() {
			for x.staying() && x.append(ctx, p) == nil {
				select {
				case <-time.After(rand.N(2*x.c.Pause + 1)):
				case <-x.leaving:
				case <-p.Done():
				}
			}
		})
	}
	wg.Wait()
	err = p.Err()
	return errors.Join(err, p.Close())
}

func (x *clientProcess) append(ctx context.Context, p *proposer.Proposer) error {
	number := x.ops.Add(1)
	data := make([]byte, payloadBytes(x.c.Seed, number, x.c.BytesMax))
	x.payloads.Fill(number, data)
	x.h.add("i %d %d", number, now())
	begin, end, err := p.Append(ctx, data)
	if err == nil {
		x.h.add("p %d %v %v", number, begin, end)
		err = p.Wait(ctx, end)
	}
	if err != nil {
		x.h.add("u %d", number)
		return err
	}
	x.h.add("k %d %d", number, now())
	return nil
}

// payloadHeadBytes is the counter and the seed, without which a payload cannot be told.
const payloadHeadBytes = 16

// payloadBytes is how long append number is, the same for everyone who asks.
func payloadBytes(seed, number uint64, bytesMax int) int {
	r := rand.New(rand.NewPCG(seed, number))
	if r.IntN(20) > 0 {
		bytesMax /= 8
	}
	return payloadHeadBytes + r.IntN(max(bytesMax-payloadHeadBytes, 1))
}

// readAbout reads what some acceptor says is committed, now and then.
func (x *clientProcess) readAbout(ctx context.Context) {
	c, err := admin.Dial(x.c.Acceptors)
	if err != nil {
		return
	}
	defer c.Close()
	at := map[string]wal.LSN{} // where to go on, for each acceptor
	for ctx.Err() == nil {
		addr := x.c.Acceptors[rand.IntN(len(x.c.Acceptors))]
		called := now()
		begin := at[addr]
		sum := newCRC()
		callCtx, done := context.WithTimeout(ctx, time.Second)
		end, err := x.readFrom(callCtx, c, addr, &begin, sum)
		done()
		if err == nil && end > begin {
			x.h.add("r %d %d %v %v %08x", called, now(), begin, end, sum.Sum32())
			at[addr] = end
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(50+rand.IntN(100)) * time.Millisecond):
		}
	}
}

func (x *clientProcess) readFrom(ctx context.Context, c *admin.Client, addr string, begin *wal.LSN, sum io.Writer) (wal.LSN, error) {
	if *begin == 0 {
		*begin = firstLSN
	}
	return c.Read(ctx, addr, admin.ReadOptions{Timeline: x.id, Begin: *begin}, func(k wal.Chunk) error {
		_, err := sum.Write(k.Data)
		return err
	})
}
