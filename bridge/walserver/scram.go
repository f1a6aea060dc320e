package walserver

import (
	"bufio"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
)

// Verifier proves a password without holding it (RFC 5802, as PostgreSQL stores it).
type Verifier struct {
	Salt                 []byte
	Iterations           int
	StoredKey, ServerKey []byte
}

const (
	mechanism         = "SCRAM-SHA-256"
	iterationsDefault = 4096
	iterationsMax     = 10_000_000
)

// NewVerifier makes a verifier for a password.
func NewVerifier(password string) (Verifier, error) {
	salt := make([]byte, 16)
	rand.Read(salt)
	salted, err := pbkdf2.Key(sha256.New, password, salt, iterationsDefault, sha256.Size)
	if err != nil {
		return Verifier{}, err
	}
	stored := sha256.Sum256(mac(salted, "Client Key"))
	return Verifier{salt, iterationsDefault, stored[:], mac(salted, "Server Key")}, nil
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	io.WriteString(h, text)
	return h.Sum(nil)
}

// String prints the verifier as pg_authid.rolpassword holds it:
// SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey.
func (v Verifier) String() string {
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("%s$%d:%s$%s:%s", mechanism, v.Iterations, b64(v.Salt), b64(v.StoredKey), b64(v.ServerKey))
}

// ParseVerifier parses what String prints and PostgreSQL stores.
func ParseVerifier(s string) (Verifier, error) {
	bad := errors.New("expected SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey, as in pg_authid.rolpassword")
	rest, ok := strings.CutPrefix(s, mechanism+"$")
	head, keys, ok2 := strings.Cut(rest, "$")
	iterations, salt, ok3 := strings.Cut(head, ":")
	stored, server, ok4 := strings.Cut(keys, ":")
	if !ok || !ok2 || !ok3 || !ok4 {
		return Verifier{}, bad
	}
	var v Verifier
	var errs [4]error
	v.Iterations, errs[0] = strconv.Atoi(iterations)
	v.Salt, errs[1] = base64.StdEncoding.DecodeString(salt)
	v.StoredKey, errs[2] = base64.StdEncoding.DecodeString(stored)
	v.ServerKey, errs[3] = base64.StdEncoding.DecodeString(server)
	if errors.Join(errs[:]...) != nil || v.Iterations < 1 || v.Iterations > iterationsMax || len(v.Salt) == 0 ||
		len(v.StoredKey) != sha256.Size || len(v.ServerKey) != sha256.Size {
		return Verifier{}, bad
	}
	return v, nil
}

// ReadUsers reads lines "role:verifier"; empty lines and lines with # say nothing.
func ReadUsers(r io.Reader) (map[string]Verifier, error) {
	users := map[string]Verifier{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, text, ok := strings.Cut(line, ":")
		v, err := ParseVerifier(text)
		if !ok || name == "" || err != nil {
			return nil, fmt.Errorf("line %d: expected role:verifier: %w", n, errors.Join(err))
		}
		if _, twice := users[name]; twice {
			return nil, fmt.Errorf("line %d: role %q is there twice", n, name)
		}
		users[name] = v
	}
	return users, lines.Err()
}

// errPassword ends an attempt whose proof does not fit.
var errPassword = errors.New("password authentication failed")

// authenticate asks the client to prove its password. A role that does not
// exist is asked all the same and fails at the end.
func (c *conn) authenticate() error {
	if c.server.config.Users == nil {
		return nil
	}
	v, known := c.server.config.Users[c.user]
	if !known {
		v, _ = NewVerifier(rand.Text())
	}
	err := c.scram(v)
	if err == nil && !known {
		err = errPassword
	}
	if err != nil {
		code := "08P01"
		if errors.Is(err, errPassword) {
			code = "28P01"
		}
		c.fatal(code, fmt.Sprintf("%v for role %q", err, c.user))
		return err
	}
	return nil
}

func (c *conn) scram(v Verifier) error {
	c.backend.Send(&pgproto3.AuthenticationSASL{AuthMechanisms: []string{mechanism}})
	first, err := c.clientFirst()
	if err != nil {
		return err
	}
	nonce := first.nonce + rand.Text()
	serverFirst := fmt.Sprintf("r=%s,s=%s,i=%d", nonce, base64.StdEncoding.EncodeToString(v.Salt), v.Iterations)
	c.backend.Send(&pgproto3.AuthenticationSASLContinue{Data: []byte(serverFirst)})
	m, err := c.saslAnswer(pgproto3.AuthTypeSASLContinue)
	if err != nil {
		return err
	}
	r, ok := m.(*pgproto3.SASLResponse)
	if !ok {
		return fmt.Errorf("expected the client's proof, got %T", m)
	}
	signature, err := v.check(first, serverFirst, nonce, string(r.Data))
	if err != nil {
		return err
	}
	c.backend.Send(&pgproto3.AuthenticationSASLFinal{Data: []byte("v=" + base64.StdEncoding.EncodeToString(signature))})
	return nil
}

// saslAnswer sends what is waiting and receives the client's next message.
func (c *conn) saslAnswer(kind uint32) (pgproto3.FrontendMessage, error) {
	if err := c.backend.SetAuthType(kind); err != nil {
		return nil, err
	}
	if err := c.backend.Flush(); err != nil {
		return nil, err
	}
	return c.backend.Receive()
}

// firstMessage is the client's first message, in its parts.
type firstMessage struct {
	header string // gs2: which channel binding, on whose behalf
	bare   string // the rest
	nonce  string
}

func (c *conn) clientFirst() (firstMessage, error) {
	m, err := c.saslAnswer(pgproto3.AuthTypeSASL)
	if err != nil {
		return firstMessage{}, err
	}
	r, ok := m.(*pgproto3.SASLInitialResponse)
	if !ok || r.AuthMechanism != mechanism {
		return firstMessage{}, fmt.Errorf("expected %s, got %T", mechanism, m)
	}
	return parseClientFirst(string(r.Data))
}

// parseClientFirst parses "n,,n=user,r=nonce". Channel binding is not offered,
// so a client may say that it does not want it (n) or that it could (y).
func parseClientFirst(s string) (firstMessage, error) {
	parts := strings.SplitN(s, ",", 3)
	if len(parts) != 3 || parts[0] != "n" && parts[0] != "y" || parts[1] != "" {
		return firstMessage{}, errors.New("the client's first SCRAM message asks for what is not offered, or is malformed")
	}
	_, nonce, ok := strings.Cut(parts[2], "r=")
	nonce, _, _ = strings.Cut(nonce, ",")
	if !ok || !strings.HasPrefix(parts[2], "n=") || nonce == "" {
		return firstMessage{}, errors.New("the client's first SCRAM message has no nonce")
	}
	return firstMessage{parts[0] + ",,", parts[2], nonce}, nil
}

// check verifies the client's proof and returns the server's signature.
func (v Verifier) check(first firstMessage, serverFirst, nonce, final string) ([]byte, error) {
	i := strings.LastIndex(final, ",p=")
	if i < 0 {
		return nil, errors.New("the client's last SCRAM message has no proof")
	}
	bare, proofText := final[:i], final[i+3:]
	want := "c=" + base64.StdEncoding.EncodeToString([]byte(first.header)) + ",r=" + nonce
	if bare != want {
		return nil, errors.New("the client's last SCRAM message does not fit its first one")
	}
	proof, err := base64.StdEncoding.DecodeString(proofText)
	if err != nil || len(proof) != sha256.Size {
		return nil, errPassword
	}
	message := first.bare + "," + serverFirst + "," + bare
	signature := mac(v.StoredKey, message)
	subtle.XORBytes(proof, proof, signature) // the client's key, if the proof is right
	stored := sha256.Sum256(proof)
	if subtle.ConstantTimeCompare(stored[:], v.StoredKey) != 1 {
		return nil, errPassword
	}
	return mac(v.ServerKey, message), nil
}
