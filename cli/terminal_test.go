package cli

import (
	"bytes"
	"strings"
	"testing"
)

func TestConfirmWithoutATerminal(t *testing.T) {
	s := &Streams{In: strings.NewReader("yes\n"), Err: &bytes.Buffer{}}
	if err := s.Confirm(false, "Delete?"); CodeOf(err) != Usage {
		t.Errorf("piped input confirmed a destructive command: %v", err)
	}
	if err := s.Confirm(true, "Delete?"); err != nil {
		t.Errorf("--yes was refused: %v", err)
	}
	if s.Colour(s.Err) {
		t.Error("a buffer was taken for a coloured terminal")
	}
}

func TestProgressOffATerminalPrintsWholeLines(t *testing.T) {
	var out bytes.Buffer
	s := &Streams{Err: &out}
	called := make(chan struct{})
	p := s.NewEagerProgress(func() string { close(called); return "half way" })
	<-called
	p.Stop()
	p.Stop()
	if out.String() != "half way\n" {
		t.Errorf("printed %q", out.String())
	}
}
