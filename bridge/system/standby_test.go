package system

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgcluster"
	"github.com/seed7f3f3bb8/holdfast/bridge/walserver"
)

// serve starts a WAL server of the world's log and returns its port.
func (w *world) serve(c walserver.Config) int {
	w.Helper()
	c.Source = w.quorum
	s, err := walserver.New(c)
	w.check(err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.check(err)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	w.Cleanup(func() {
		if err := s.Close(); err != nil {
			w.Error(err)
		}
		<-ended
	})
	return l.Addr().(*net.TCPAddr).Port
}

func certificate(t *testing.T) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "holdfast"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

// TestStandbysFollowTheWALServer: two stock standbys and pg_receivewal, over
// TLS and with passwords; a failover through a fence; the other standby follows
// the new timeline without a restart.
func TestStandbysFollowTheWALServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgcluster.InitOptions{SegmentMiB: 1}, "wal_keep_size = 64MB")
	w.sql(w.primary, loadTable)
	verifier, err := walserver.NewVerifier("secret")
	w.check(err)
	port := w.serve(walserver.Config{Users: map[string]walserver.Verifier{"standby": verifier}, TLS: certificate(t), RequireTLS: true,
		SlotsFile: filepath.Join(w.dir, "slots.json"), Keepalive: time.Second})
	conninfo := fmt.Sprintf("host=127.0.0.1 port=%d user=standby password=secret sslmode=require", port)

	standby := func(name, more string) *pgcluster.Cluster {
		c, err := w.primary.BaseBackup(w.ctx, filepath.Join(w.dir, name), false)
		w.check(err)
		w.check(c.Configure("primary_conninfo = '"+conninfo+" application_name="+name+"'", "wal_retrieve_retry_interval = 200ms", more))
		w.signal(c, "standby.signal")
		w.start(c)
		return c
	}
	one := standby("one", "hot_standby_feedback = on")
	two := standby("two", "wal_receiver_create_temp_slot = on")
	w.sql(w.primary, "INSERT INTO acked SELECT i, repeat('x', 200) FROM generate_series(1, 20000) i")
	w.replayed(one, w.lsn(w.primary))
	w.replayed(two, w.lsn(w.primary))
	for _, c := range []*pgcluster.Cluster{one, two} {
		if n := w.sql(c, "SELECT count(*) FROM acked"); n != "20000" {
			t.Errorf("a standby has %s rows", n)
		}
	}

	// pg_receivewal: slot, stream to a position, drop; the files are the primary's.
	received := filepath.Join(w.dir, "received")
	w.check(w.in.MakeDir(received))
	// It goes on behind the newest file that is there.
	seed := "000000010000000000000008"
	b, err := os.ReadFile(filepath.Join(w.primary.Dir, "pg_wal", seed))
	w.check(err)
	w.check(os.WriteFile(filepath.Join(received, seed), b, 0o644))
	receive := func(args ...string) (string, error) {
		return w.in.Run(w.ctx, "pg_receivewal", append([]string{"-d", conninfo, "-D", received}, args...)...)
	}
	for _, args := range []string{"--slot=foo --create-slot", "--slot=foo --no-loop --endpos=" + w.lsn(w.primary).String(), "--slot=foo --drop-slot"} {
		if out, err := receive(strings.Fields(args)...); err != nil {
			t.Fatal(args, err, out)
		}
	}
	files, _ := filepath.Glob(filepath.Join(received, "0*"))
	same := 0
	for _, f := range files {
		got, err := os.ReadFile(f)
		w.check(err)
		want, err := os.ReadFile(filepath.Join(w.primary.Dir, "pg_wal", filepath.Base(f)))
		if err == nil && !strings.HasSuffix(f, ".partial") {
			if string(got) != string(want) {
				t.Errorf("%s differs from the primary's", filepath.Base(f))
			}
			same++
		}
	}
	if same < 4 {
		t.Errorf("only %d segments could be compared: %v", same, files)
	}

	// What must not get in.
	for bad, want := range map[string]string{
		strings.Replace(conninfo, "password=secret", "password=wrong", 1):  "password authentication failed",
		strings.Replace(conninfo, "user=standby", "user=nobody", 1):        "password authentication failed",
		strings.Replace(conninfo, "sslmode=require", "sslmode=disable", 1): "wants TLS",
	} {
		out, err := w.in.Run(w.ctx, "pg_receivewal", "-d", bad, "-D", received, "--no-loop")
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v %s", bad, err, out)
		}
	}
	if out, err := w.in.Run(w.ctx, "pg_basebackup", "-d", conninfo, "-D", filepath.Join(w.dir, "no"), "-X", "none"); err == nil || !strings.Contains(out, "no data files") {
		t.Errorf("pg_basebackup: %v %s", err, out)
	}

	// Failover: kill the primary, fence, let one standby have all of it, promote.
	w.check(w.primary.Stop(w.ctx, pgcluster.Kill))
	w.bridge.kill()
	f := w.fence()
	w.until("the log's end at the standby", func() bool {
		return w.sql(one, fmt.Sprintf("SELECT pg_last_wal_receive_lsn() >= '%v'", f.End)) == "t"
	})
	w.check(one.Promote(w.ctx))
	w.check(one.Configure("synchronous_standby_names = 'holdfast'"))
	w.startBridge(one)
	w.sql(one, "INSERT INTO acked VALUES (-1, '')")
	w.replayed(two, w.lsn(one))
	if n := w.sql(two, "SELECT count(*) FROM acked"); n != "20001" {
		t.Errorf("after the failover the other standby has %s rows", n)
	}
	if fork := w.forkOf(one, 2); fork < f.End {
		t.Errorf("promoted at %v, below the log's end %v", fork, f.End)
	}
}
