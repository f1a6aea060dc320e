package nemesis

import (
	"errors"
	"fmt"
	"net"
	"time"
)

// network is where acceptors and clients live. Each acceptor serves on an inner
// address and is reached through a proxy at its outer one.
type network interface {
	// inner and http are where acceptor n listens, outer where others reach it.
	inner(n site) string
	http(n site) string
	outer(n site) string
	// local is the address that a client at s connects from.
	local(s site) string
	// enter calls start on a thread that is at s.
	enter(s site, start func() error) error
	// enterHere moves this thread, which is thrown away afterwards, to s.
	enterHere(s site, start func() error) error
	// whose tells which site an address belongs to.
	whose(net.Addr) site
	// cut makes packets from one site to another vanish; false says that this
	// network cannot, and that the proxy must do.
	cut(from, to site, on bool) (bool, error)
	name() string
	close() error
}

// loopback is a network for machines on which we may not make one: sites are
// told apart by their address in 127/8, and acceptors' own calls by having none.
type loopback struct {
	ports [2 * acceptors]int
}

const (
	loopPortMin = 10_000 // below the range from which the kernel takes ports for outgoing connections
	loopPortMax = 32_000
)

func newLoopback(draw func(n int) int) (*loopback, error) {
	l := &loopback{}
	for i := range l.ports {
		for tries := 0; l.ports[i] == 0; tries++ {
			if tries > 1000 {
				return nil, errors.New("no free ports on loopback")
			}
			port := loopPortMin + draw(loopPortMax-loopPortMin)
			free := true
			for _, taken := range l.ports[:i] {
				free = free && taken != port
			}
			probe, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if err != nil || !free {
				if err == nil {
					_ = probe.Close()
				}
				continue
			}
			_ = probe.Close()
			l.ports[i] = port
		}
	}
	return l, nil
}

func (l *loopback) inner(n site) string { return fmt.Sprintf("127.0.0.1:%d", l.ports[n-1]) }
func (l *loopback) http(n site) string  { return fmt.Sprintf("127.0.0.1:%d", l.ports[acceptors+n-1]) }
func (l *loopback) outer(n site) string { return fmt.Sprintf("127.0.0.%d:%d", 100+n, l.ports[n-1]) }
func (l *loopback) local(s site) string { return fmt.Sprintf("127.0.0.%d", 10+s) }

func (l *loopback) enter(_ site, start func() error) error     { return start() }
func (l *loopback) enterHere(_ site, start func() error) error { return start() }

func (l *loopback) whose(a net.Addr) site {
	if t, ok := a.(*net.TCPAddr); ok {
		if ip := t.IP.To4(); ip != nil && ip[0] == 127 && ip[3] >= 10 && ip[3] < 10+sites {
			return site(ip[3] - 10)
		}
	}
	return judge // an acceptor asking its peers
}

func (l *loopback) cut(site, site, bool) (bool, error) { return false, nil }
func (l *loopback) name() string                       { return "loopback with proxies" }
func (l *loopback) close() error                       { return nil }

// serveProxies puts a proxy in front of every acceptor.
func serveProxies(n network, l *links) ([]*proxy, error) {
	var all []*proxy
	for s := site(1); s <= acceptors; s++ {
		var listen net.Listener
		err := n.enter(s, func() (err error) {
			listen, err = net.Listen("tcp", n.outer(s))
			return err
		})
		if err != nil {
			for _, p := range all {
				p.close()
			}
			return nil, err
		}
		all = append(all, newProxy(s, l, listen, n.whose, func() (c net.Conn, err error) {
			err = n.enter(s, func() error {
				c, err = net.DialTimeout("tcp", n.inner(s), time.Second)
				return err
			})
			return c, err
		}))
	}
	return all, nil
}
