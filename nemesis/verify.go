package nemesis

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"os"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"github.com/seed7f3f3bb8/holdfast/workload"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func newCRC() hash.Hash32 { return crc32.New(castagnoli) }

// firstLSN is where each round's timeline begins.
const firstLSN = wal.LSN(0x100000)

// verdict is what a round's evidence comes to.
type verdict struct {
	acked, unknown, absent, wins, reads int
}

// readHistories reads what the clients of a round wrote down.
func readHistories(names []string) ([]*history, error) {
	var all []*history
	for i, name := range names {
		f, err := os.Open(name)
		if errors.Is(err, os.ErrNotExist) {
			all = append(all, &history{}) // ended before it began
			continue
		}
		if err != nil {
			return nil, err
		}
		h, err := parseHistory(f, i)
		_ = f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, h)
	}
	return all, nil
}

// acksOf is what an audit needs of histories.
func acksOf(id wal.TimelineID, all []*history) (*workload.Acks, error) {
	a := &workload.Acks{}
	for i, h := range all {
		a.Runs = append(a.Runs, workload.Run{Timeline: id, Seed: h.seed})
		payloads := workload.NewPayloads(h.seed)
		for _, o := range h.ops {
			if !o.acked() {
				continue
			}
			data := make([]byte, payloadBytes(h.seed, o.number, clientBytesMax))
			payloads.Fill(o.number, data)
			if !o.placed || o.end-o.begin != wal.LSN(len(data)) {
				return nil, fmt.Errorf("client %d: append %d of %d bytes was acknowledged at [%v, %v)", i, o.number, len(data), o.begin, o.end)
			}
			a.List = append(a.List, workload.Ack{Begin: o.begin, End: o.end, CRC: wal.Checksum(data), Run: int32(i), Counter: o.number})
		}
	}
	slices.SortFunc(a.List, func(x, y workload.Ack) int { return cmp.Compare(x.Begin, y.Begin) })
	for i := 1; i < len(a.List); i++ {
		if a.List[i].Begin < a.List[i-1].End {
			return nil, &workload.OverlapError{A: a.List[i-1], B: a.List[i]}
		}
	}
	return a, nil
}

// finalLog reads the whole log of the acceptor that the next proposer would begin from.
func finalLog(ctx context.Context, c *admin.Client, id wal.TimelineID) ([]byte, error) {
	best, err := admin.Best(c.Timelines(ctx, id))
	if err != nil {
		return nil, err
	}
	var log bytes.Buffer
	o := admin.ReadOptions{Timeline: id, Creation: best.Value.Creation, Begin: firstLSN, End: best.Value.Flush}
	if o.End > best.Value.Commit {
		o.PinnedTerm = best.Value.History.LastTerm()
	}
	end, err := c.Read(ctx, best.Addr, o, func(k wal.Chunk) error {
		_, err := log.Write(k.Data)
		return err
	})
	if err == nil && end != best.Value.Flush {
		err = fmt.Errorf("reading ended at %v, the log ends at %v", end, best.Value.Flush)
	}
	return log.Bytes(), err
}

// judgeHistories compares what clients saw with what the log came to be.
func judgeHistories(all []*history, log []byte) (v verdict, err error) {
	order, err := attribute(all, log)
	if err != nil {
		return v, err
	}
	there := map[*op]bool{}
	for _, o := range order {
		there[o] = true
	}
	for _, h := range all {
		v.wins += len(h.wins)
		v.reads += len(h.read)
		for i := range h.ops {
			switch o := &h.ops[i]; {
			case o.acked() && !there[o]:
				return v, fmt.Errorf("append %d of client %d was acknowledged at [%v, %v) and is not in the log", o.number, o.client, o.begin, o.end)
			case o.acked():
				v.acked++
			case there[o]:
				v.unknown++
			default:
				v.absent++
			}
		}
		for _, r := range h.read {
			if end := firstLSN + wal.LSN(len(log)); r.end > end {
				return v, fmt.Errorf("[%v, %v) was read as committed; the log ends at %v", r.begin, r.end, end)
			}
			if crc := crc32.Checksum(log[r.begin-firstLSN:r.end-firstLSN], castagnoli); crc != r.crc {
				return v, fmt.Errorf("[%v, %v) was read with checksum %08x; what stands there has %08x: one position had two values", r.begin, r.end, r.crc, crc)
			}
		}
	}
	return v, linearizable(all, order)
}

// attribute finds out which append each byte of the log is of.
func attribute(all []*history, log []byte) ([]*op, error) {
	type key struct{ seed, number uint64 }
	ops := map[key]*op{}
	payloads := map[uint64]*workload.Payloads{}
	for _, h := range all {
		payloads[h.seed] = workload.NewPayloads(h.seed)
		for i := range h.ops {
			ops[key{h.seed, h.ops[i].number}] = &h.ops[i]
		}
	}
	var order []*op
	seen := map[*op]bool{}
	want := make([]byte, clientBytesMax+payloadHeadBytes)
	for at := 0; at < len(log); {
		lsn := firstLSN + wal.LSN(at)
		if len(log)-at < payloadHeadBytes {
			return nil, fmt.Errorf("the log ends within an append that begins at %v", lsn)
		}
		k := key{number: binary.LittleEndian.Uint64(log[at:]), seed: binary.LittleEndian.Uint64(log[at+8:])}
		o := ops[k]
		if o == nil {
			return nil, fmt.Errorf("what stands at %v was never appended", lsn)
		}
		want = want[:payloadBytes(k.seed, k.number, clientBytesMax)]
		payloads[k.seed].Fill(k.number, want)
		if at+len(want) > len(log) || !bytes.Equal(log[at:at+len(want)], want) {
			return nil, fmt.Errorf("append %d of client %d stands at %v with other bytes", o.number, o.client, lsn)
		}
		if o.placed && o.begin != lsn {
			return nil, fmt.Errorf("append %d of client %d was given the place %v and stands at %v", o.number, o.client, o.begin, lsn)
		}
		if seen[o] {
			return nil, fmt.Errorf("append %d of client %d stands in the log twice, the second time at %v", o.number, o.client, lsn)
		}
		seen[o] = true
		o.begin, o.end = lsn, lsn+wal.LSN(len(want))
		order = append(order, o)
		at += len(want)
	}
	return order, nil
}

// The model: a log that appends only. An append stands where the log ended; a
// read may be of an acceptor that lags, but never of what was not yet appended.
type (
	appendCall struct{ bytes wal.LSN }
	appendDone struct{ begin wal.LSN }
	readCall   struct{}
	readDone   struct{ end wal.LSN }
)

var logModel = porcupine.Model{
	Init: func() any { return firstLSN },
	Step: func(state, in, out any) (bool, any) {
		end := state.(wal.LSN)
		switch out := out.(type) {
		case appendDone:
			return out.begin == end, end + in.(appendCall).bytes
		case readDone:
			return out.end <= end, end
		}
		return false, end
	},
	Equal: func(a, b any) bool { return a == b },
}

// checkWait bounds the search for an order.
const checkWait = 2 * time.Minute

// linearizable asks Porcupine whether the calls can have happened in one order
// that agrees with what was answered and with when. Appends of unknown outcome
// that are in the log may have happened at any time after they were called; those that are not never happened.
func linearizable(all []*history, order []*op) error {
	var ops []porcupine.Operation
	client := 0
	add := func(in, out any, called, returned int64) {
		// A client of its own for each: two calls of one appender never overlap anyhow.
		ops = append(ops, porcupine.Operation{ClientId: client, Input: in, Output: out, Call: called, Return: returned})
		client++
	}
	for _, o := range order {
		add(appendCall{o.end - o.begin}, appendDone{o.begin}, o.called, o.returned)
	}
	for _, h := range all {
		for _, r := range h.read {
			add(readCall{}, readDone{r.end}, r.called, r.returned)
		}
	}
	switch porcupine.CheckOperationsTimeout(logModel, ops, checkWait) {
	case porcupine.Illegal:
		return fmt.Errorf("the calls of the clients cannot have happened in any order: %d appends and reads are not linearizable", len(ops))
	case porcupine.Unknown:
		return fmt.Errorf("whether %d appends and reads are linearizable was not found out in %v", len(ops), checkWait)
	}
	return nil
}
