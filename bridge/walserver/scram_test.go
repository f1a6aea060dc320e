package walserver

import (
	"strings"
	"testing"
)

func TestVerifierRoundTrip(t *testing.T) {
	v, err := NewVerifier("secret")
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseVerifier(v.String())
	if err != nil || again.String() != v.String() {
		t.Fatal(again, err)
	}
	// As PostgreSQL 15 stored it for the password "right".
	for _, bad := range []string{"", "md5abc", "SCRAM-SHA-256$", "SCRAM-SHA-256$0:AA==$AA==:AA==", "SCRAM-SHA-256$4096:AA==$AA==:AA==",
		strings.Replace(v.String(), "$4096", "$99999999999", 1), strings.Replace(v.String(), "SHA-256", "SHA-1", 1)} {
		if _, err := ParseVerifier(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	users, err := ReadUsers(strings.NewReader("# comment\n\nstandby:" + v.String() + "\n"))
	if err != nil || users["standby"].String() != v.String() {
		t.Error(users, err)
	}
	for _, bad := range []string{"standby", "standby:x", ":" + v.String(), "a:" + v.String() + "\na:" + v.String()} {
		if _, err := ReadUsers(strings.NewReader(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// TestRFC7677 is the exchange that the RFC prints.
func TestRFC7677(t *testing.T) {
	v, err := ParseVerifier("SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=")
	if err != nil {
		t.Fatal(err)
	}
	first, err := parseClientFirst("n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
	if err != nil {
		t.Fatal(err)
	}
	const nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
	serverFirst := "r=" + nonce + ",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
	final := "c=biws,r=" + nonce + ",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
	if _, err := v.check(first, serverFirst, nonce, final); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", strings.Replace(final, "dHz", "dHy", 1), strings.Replace(final, "biws", "eSws", 1), strings.Replace(final, nonce, "x"+nonce, 1), final[:len(final)-8]} {
		if _, err := v.check(first, serverFirst, nonce, bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	for _, bad := range []string{"", "n,,", "p=tls-server-end-point,,n=,r=a", "n,a=x,n=,r=a", "n,,n=,r=", "n,,r=a"} {
		if _, err := parseClientFirst(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func FuzzScram(f *testing.F) {
	f.Add("n,,n=user,r=abc", "c=biws,r=abcdef,p=AAAA", "SCRAM-SHA-256$4096:AA==$AA==:AA==")
	f.Fuzz(func(t *testing.T, first, final, verifier string) {
		v, err := ParseVerifier(verifier)
		if err != nil {
			v, _ = NewVerifier("x")
		}
		if m, err := parseClientFirst(first); err == nil {
			if _, err := v.check(m, "r=,s=,i=", m.nonce+"x", final); err == nil {
				t.Fatal("a made-up proof was accepted")
			}
		}
	})
}
