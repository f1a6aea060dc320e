package nemesis

import (
	"net"
	"sync"
	"time"
)

// site is a place on the network.
type site int

// The sites: acceptors 1 to 3, two places for proposers, and where the judge sits.
const (
	judge     site = 0
	proposerA site = 4
	proposerB site = 5
	sites          = 6
	acceptors      = 3
)

// links is what the network does to what one site sends to another. It is safe
// for concurrent use.
type links struct {
	mu      sync.Mutex
	changed chan struct{}
	held    [sites][sites]bool
	delay   [sites][sites]time.Duration
}

func newLinks() *links { return &links{changed: make(chan struct{})} }

func (l *links) set(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	close(l.changed)
	l.changed = make(chan struct{})
}

// hold makes everything that from sends to to wait.
func (l *links) hold(from, to site, held bool) { l.set(func() { l.held[from][to] = held }) }

// slow makes everything that from sends to to take longer.
func (l *links) slow(from, to site, d time.Duration) { l.set(func() { l.delay[from][to] = d }) }

// pass waits until what from sends may reach to; false says that the connection ended meanwhile.
func (l *links) pass(from, to site, ended <-chan struct{}) bool {
	for {
		l.mu.Lock()
		held, delay, changed := l.held[from][to], l.delay[from][to], l.changed
		l.mu.Unlock()
		if !held {
			if delay == 0 {
				return true
			}
			select {
			case <-time.After(delay):
				return true
			case <-ended:
				return false
			}
		}
		select {
		case <-changed:
		case <-ended:
			return false
		}
	}
}

// proxy stands in front of one acceptor: what comes from any site and goes back
// to it passes the links. Bytes that are held back stay where they are, so the
// connection looks alive, as it does when packets vanish.
type proxy struct {
	at     site
	links  *links
	whose  func(net.Addr) site
	listen net.Listener
	dial   func() (net.Conn, error)

	wg    sync.WaitGroup
	mu    sync.Mutex
	conns map[net.Conn]struct{}
	done  bool
}

func newProxy(at site, l *links, listen net.Listener, whose func(net.Addr) site, dial func() (net.Conn, error)) *proxy {
	p := &proxy{at: at, links: l, listen: listen, whose: whose, dial: dial, conns: map[net.Conn]struct{}{}}
	p.wg.Go(func() {
		for {
			c, err := listen.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(c) })
		}
	})
	return p
}

// close ends the proxy and every connection through it.
func (p *proxy) close() {
	_ = p.listen.Close()
	p.mu.Lock()
	p.done = true
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

// reset ends every connection through the proxy; new ones are welcome.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

// keep notes a connection, so that close can end it.
func (p *proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *proxy) drop(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *proxy) serve(client net.Conn) {
	from := p.whose(client.RemoteAddr())
	if !p.keep(client) {
		_ = client.Close()
		return
	}
	defer p.drop(client)
	server, err := p.dial()
	if err != nil {
		return
	}
	if !p.keep(server) {
		_ = server.Close()
		return
	}
	defer p.drop(server)
	ended := make(chan struct{})
	var once sync.Once
	end := func() {
		once.Do(func() { close(ended) })
		_ = client.Close()
		_ = server.Close()
	}
	var both sync.WaitGroup
	both.Go(func() { p.carry(server, client, from, p.at, ended, end) })
	both.Go(func() { p.carry(client, server, p.at, from, ended, end) })
	both.Wait()
}

// carryBytes bounds what is on its way in a proxy; the rest waits in the kernel.
const carryBytes = 64 << 10

func (p *proxy) carry(dst, src net.Conn, from, to site, ended <-chan struct{}, end func()) {
	defer end()
	buf := make([]byte, carryBytes)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			if !p.links.pass(from, to, ended) {
				return
			}
			if _, err := dst.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
