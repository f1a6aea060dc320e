package nemesis

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/seed7f3f3bb8/holdfast/leftovers"
)

// namespaces is a network of our own: a bridge in one namespace, one more for each site, and
// a link to the bridge from each, the judge's from the machine itself. A packet
// that is to vanish is sent to a hardware address that nobody has.
type namespaces struct {
	ledger *leftovers.Ledger
	prefix string // of all names
	subnet string // "10.x.y."
}

// nowhere is a hardware address that no link has.
const nowhere = "02:00:00:00:de:ad"

func namespacesAvailable() error {
	if os.Geteuid() != 0 {
		return errors.New("network namespaces are for root only")
	}
	_, err := exec.LookPath("ip")
	return err
}

func newNamespaces(ledger *leftovers.Ledger) (*namespaces, error) {
	pid := os.Getpid()
	n := &namespaces{ledger: ledger, prefix: fmt.Sprintf("hf%d", pid), subnet: fmt.Sprintf("10.%d.%d.", 128+pid>>8&0x3f, pid&0xff)}
	if err := n.make(); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

func (n *namespaces) ns(s site) string {
	if s == judge {
		return n.prefix + "sw"
	}
	return fmt.Sprintf("%sn%d", n.prefix, s)
}

func (n *namespaces) host(s site) string {
	if s == judge {
		return n.subnet + "254"
	}
	return fmt.Sprintf("%s%d", n.subnet, s)
}

// make builds it all. The namespace called the judge's holds the bridge.
func (n *namespaces) make() error {
	for s := range site(sites) {
		if err := n.ledger.Take(leftovers.Netns, n.ns(s)); err != nil {
			return err
		}
		if err := ip("netns add " + n.ns(s)); err != nil {
			return err
		}
		if err := ip("-n " + n.ns(s) + " link set lo up"); err != nil {
			return err
		}
	}
	sw := n.ns(judge)
	steps := []string{"-n " + sw + " link add br0 type bridge", "-n " + sw + " link set br0 up"}
	for s := site(1); s < sites; s++ {
		steps = append(steps,
			fmt.Sprintf("-n %s link add eth0 type veth peer name port%d netns %s", n.ns(s), s, sw),
			fmt.Sprintf("-n %s link set port%d master br0 up", sw, s),
			fmt.Sprintf("-n %s addr add %s/24 dev eth0", n.ns(s), n.host(s)),
			fmt.Sprintf("-n %s link set eth0 up", n.ns(s)))
	}
	if err := n.ledger.Take(leftovers.Link, n.prefix+"j"); err != nil {
		return err
	}
	steps = append(steps,
		fmt.Sprintf("link add %sj type veth peer name port0 netns %s", n.prefix, sw),
		fmt.Sprintf("-n %s link set port0 master br0 up", sw),
		fmt.Sprintf("addr add %s/24 dev %sj", n.host(judge), n.prefix),
		fmt.Sprintf("link set %sj up", n.prefix))
	for _, step := range steps {
		if err := ip(step); err != nil {
			return err
		}
	}
	return nil
}

func (n *namespaces) close() error {
	err := n.ledger.Return(leftovers.Link, n.prefix+"j")
	for s := range site(sites) {
		err = errors.Join(err, n.ledger.Return(leftovers.Netns, n.ns(s)))
	}
	return err
}

// Ports within a namespace are all ours.
func (n *namespaces) inner(site) string   { return "127.0.0.1:7001" }
func (n *namespaces) outer(s site) string { return n.host(s) + ":7000" }
func (n *namespaces) http(s site) string  { return n.host(s) + ":7080" }
func (n *namespaces) local(s site) string { return n.host(s) }
func (n *namespaces) name() string        { return "network namespaces" }

func (n *namespaces) whose(a net.Addr) site {
	if t, ok := a.(*net.TCPAddr); ok {
		for s := range site(sites) {
			if t.IP.String() == n.host(s) {
				return s
			}
		}
	}
	return judge
}

func (n *namespaces) cut(from, to site, on bool) (bool, error) {
	if from == judge {
		return false, nil
	}
	if on {
		return true, ip(fmt.Sprintf("-n %s neigh replace %s lladdr %s dev eth0 nud permanent", n.ns(from), n.host(to), nowhere))
	}
	return true, ip(fmt.Sprintf("-n %s neigh del %s dev eth0", n.ns(from), n.host(to)))
}

// enter runs start on a thread that has moved into the site's namespace. The
// thread ends with it: it cannot be given back to the others.
func (n *namespaces) enter(s site, start func() error) error {
	if s == judge {
		return start()
	}
	return onOwnThread(func() error { return n.enterHere(s, start) })
}

func (n *namespaces) enterHere(s site, start func() error) error {
	f, err := os.Open("/run/netns/" + n.ns(s))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter network namespace %s: %w", n.ns(s), err)
	}
	return start()
}

// onOwnThread runs f on a thread that is thrown away afterwards.
func onOwnThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked
		done <- f()
	}()
	return <-done
}

func ip(line string) error {
	args := strings.Fields(line)
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", line, err, strings.TrimSpace(string(out)))
	}
	return nil
}
