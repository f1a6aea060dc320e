package nemesis

import (
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// echo answers with what it is sent, behind a proxy for acceptor 1.
func echo(t *testing.T) (*links, *proxy) {
	t.Helper()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			go answer(c)
		}
	}()
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := newLinks()
	p := newProxy(1, l, front, func(net.Addr) site { return proposerA }, func() (net.Conn, error) { return net.Dial("tcp", server.Addr().String()) })
	t.Cleanup(func() {
		p.close()
		server.Close()
		goleak.VerifyNone(t)
	})
	return l, p
}

func answer(c net.Conn) {
	defer c.Close()
	buf := make([]byte, 100)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		if _, err := c.Write(buf[:n]); err != nil {
			return
		}
	}
}

func call(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
}

// answered waits for one byte; for none it waits a moment, which can only miss a fault.
func answered(t *testing.T, c net.Conn, want bool) {
	t.Helper()
	wait := 10 * time.Second
	if !want {
		wait = 50 * time.Millisecond
	}
	if err := c.SetReadDeadline(time.Now().Add(wait)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); (err == nil) != want {
		t.Fatalf("answered: %v, expected %v (%v)", err == nil, want, err)
	}
}

func TestAProxyHoldsBackEitherWay(t *testing.T) {
	l, p := echo(t)
	c, err := net.Dial("tcp", p.listen.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	call(t, c)
	answered(t, c, true)
	for _, way := range [][2]site{{proposerA, 1}, {1, proposerA}} {
		l.hold(way[0], way[1], true)
		call(t, c)
		answered(t, c, false)
		l.hold(way[0], way[1], false)
		answered(t, c, true) // held back, not lost
	}
	l.hold(proposerB, 1, true) // somebody else's
	call(t, c)
	answered(t, c, true)
	l.slow(proposerA, 1, time.Millisecond)
	call(t, c)
	answered(t, c, true)
}

func TestAProxyEndsWhatIsHeldBack(t *testing.T) {
	l, p := echo(t)
	c, err := net.Dial("tcp", p.listen.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l.hold(proposerA, 1, true)
	call(t, c)
	answered(t, c, false)
	p.reset()
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection was not ended")
	}
}
