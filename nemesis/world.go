package nemesis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/blockdev"
	"github.com/seed7f3f3bb8/holdfast/fleet"
	"github.com/seed7f3f3bb8/holdfast/leftovers"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// world is three machines, a network, and the clients of one round at a time.
type world struct {
	o       *Options
	rng     *rand.Rand
	dir     string
	self    string
	ledger  *leftovers.Ledger
	noDisks error // why machines have plain directories; nil if they have disks

	net      network
	links    *links
	proxies  []*proxy
	machines []*machine // acceptor 1 is the first
	fleet    *fleet.Fleet
	admin    *admin.Client

	clientLog *os.File

	round     int
	timeline  wal.TimelineID
	creation  wal.CreationID
	clients   []*client
	histories []string // files of this round

	suffering *machine // by the present fault; nil if it is not about one
	kills     int      // of others meanwhile
	broken    error    // what went wrong with them
}

func newWorld(ctx context.Context, o *Options) (*world, error) {
	ledger, err := leftovers.Open(leftovers.DefaultDir(), func(err error) { o.Log(err.Error()) })
	if err != nil {
		return nil, err
	}
	w := &world{o: o, ledger: ledger, rng: rand.New(rand.NewPCG(o.Seed, 9)), links: newLinks(), noDisks: blockdev.Available()}
	if err := w.build(ctx); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *world) build(ctx context.Context) (err error) {
	if w.self, err = self(); err != nil {
		return err
	}
	if w.dir, err = os.MkdirTemp("", "holdfast-nemesis-"); err != nil {
		return err
	}
	if !w.o.KeepLogs {
		if err := w.ledger.Take(leftovers.Dir, w.dir); err != nil {
			return err
		}
	}
	if w.clientLog, err = os.Create(filepath.Join(w.dir, "clients.log")); err != nil {
		return err
	}
	noSpaces := namespacesAvailable()
	if noSpaces == nil && !w.o.Loopback {
		var n *namespaces
		if n, noSpaces = newNamespaces(w.ledger); noSpaces == nil {
			w.net = n
		}
	}
	if w.net == nil {
		if noSpaces != nil {
			w.o.Log("no network namespaces here: " + noSpaces.Error())
		}
		if w.net, err = newLoopback(w.rng.IntN); err != nil {
			return err
		}
	}
	if w.o.PlainDirs && w.noDisks == nil {
		w.noDisks = errors.New("plain directories were asked for")
	}
	if w.noDisks != nil {
		w.o.Log("no disks of our own here: " + w.noDisks.Error())
	}
	for s := site(1); s <= acceptors; s++ {
		m, err := newMachine(w, s)
		if m != nil {
			w.machines = append(w.machines, m)
		}
		if err != nil {
			return err
		}
	}
	if w.proxies, err = serveProxies(w.net, w.links); err != nil {
		return err
	}
	w.fleet, err = fleet.Start(ctx, fleet.Config{
		Binary: w.o.Binary, Dir: w.dir, Nodes: acceptors,
		Args: []string{"--first-segment-bytes", "1MiB", "--segment-bytes", "1MiB"},
		Place: func(id int) fleet.Place {
			s := site(id)
			return fleet.Place{Addr: w.net.outer(s), Listen: w.net.inner(s), HTTP: w.net.http(s), Enter: w.machines[id-1].enter}
		},
	})
	if err != nil {
		return err
	}
	for i, n := range w.fleet.Nodes {
		w.machines[i].node = n
	}
	w.admin, err = admin.Dial(w.outer())
	return err
}

// close ends every process and gives everything back.
func (w *world) close() error {
	var err error
	for len(w.clients) > 0 {
		w.clients[0].kill()
	}
	if w.admin != nil {
		_ = w.admin.Close()
	}
	if w.fleet != nil {
		w.fleet.Kill()
	}
	for _, m := range w.machines {
		err = errors.Join(err, m.close())
	}
	for _, p := range w.proxies {
		p.close()
	}
	if n, ok := w.net.(*namespaces); ok {
		err = errors.Join(err, n.close())
	}
	if w.clientLog != nil {
		_ = w.clientLog.Close()
	}
	return errors.Join(err, w.ledger.Close())
}

func (w *world) outer() []string {
	var addrs []string
	for s := site(1); s <= acceptors; s++ {
		addrs = append(addrs, w.net.outer(s))
	}
	return addrs
}

// cut makes everything that from sends to to vanish, or be held back where
// packets cannot be made to vanish.
func (w *world) cut(from, to site, on bool) error {
	if done, err := w.net.cut(from, to, on); done {
		return err
	}
	w.links.hold(from, to, on)
	return nil
}

// peersOf lists the other sites that talk to s.
func peersOf(s site) []site {
	var all []site
	for x := site(1); x < sites; x++ {
		if x != s && (s <= acceptors || x <= acceptors) {
			all = append(all, x)
		}
	}
	return all
}

// questionWait bounds a question to the acceptors.
const questionWait = 2 * time.Second

// look asks all acceptors where the timeline stands.
func (w *world) look(ctx context.Context) []admin.Answer[*admin.Timeline] {
	ctx, cancel := context.WithTimeout(ctx, questionWait)
	defer cancel()
	return w.admin.Timelines(ctx, w.timeline)
}

// high is the highest term and commit that any acceptor knows.
func (w *world) high(ctx context.Context) (term wal.Term, commit wal.LSN) {
	for _, a := range w.look(ctx) {
		if a.Err == nil {
			term, commit = max(term, a.Value.Term), max(commit, a.Value.Commit)
		}
	}
	return term, commit
}

// eventually calls look until it says true. It says false if that takes too long.
func eventually(ctx context.Context, wait time.Duration, look func() bool) bool {
	for deadline := time.Now().Add(wait); !look(); {
		if time.Now().After(deadline) || ctx.Err() != nil {
			return false
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return true
}

// progressWait bounds how long the log may stand still once nothing is wrong any more.
const progressWait = 20 * time.Second

// progress waits until something new is committed.
func (w *world) progress(ctx context.Context) error {
	_, before := w.high(ctx)
	if !eventually(ctx, progressWait, func() bool {
		_, commit := w.high(ctx)
		return commit > before
	}) && ctx.Err() == nil {
		return fmt.Errorf("nothing was committed within %v although nothing is wrong any more; commit %v", progressWait, before)
	}
	return ctx.Err()
}

// end is the last of a log file.
func end(name string, n int64) string {
	f, err := os.Open(name)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil {
		_, _ = f.Seek(max(0, st.Size()-n), io.SeekStart)
	}
	text, _ := io.ReadAll(f)
	return string(text)
}
