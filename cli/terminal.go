package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Streams is where a command reads and writes.
type Streams struct {
	In  io.Reader
	Out io.Writer // results: what a script wants
	Err io.Writer // talk: progress, warnings, errors
	Env []string  // as os.Environ gives it
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// Colour reports whether w may be coloured: a terminal that is not dumb, and
// NO_COLOR is not set.
func (s *Streams) Colour(w io.Writer) bool {
	return IsTerminal(w) && s.getenv("NO_COLOR") == "" && s.getenv("TERM") != "dumb"
}

func (s *Streams) getenv(name string) string {
	value := ""
	for _, entry := range s.Env {
		if n, v, ok := strings.Cut(entry, "="); ok && n == name {
			value = v
		}
	}
	return value
}

// Colours of a Painter.
const (
	Bold   = "1"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
)

// Painter colours text, or leaves it alone.
type Painter bool

// Paint returns text in a colour.
func (p Painter) Paint(colour, text string) string {
	if !p {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// Confirm asks before something that cannot be undone. With yes it does not
// ask; without it, and without a terminal to ask on, it refuses.
func (s *Streams) Confirm(yes bool, question string) error {
	if yes {
		return nil
	}
	if !IsTerminal(s.In) || !IsTerminal(s.Err) {
		return Errorf(Usage, "this cannot be undone and there is no terminal to ask on: repeat with --yes to do it")
	}
	fmt.Fprintf(s.Err, "%s Type yes to go on: ", question)
	line, _ := bufio.NewReader(s.In).ReadString('\n')
	if strings.TrimSpace(line) != "yes" {
		return Errorf(Failure, "not confirmed; nothing was done")
	}
	return nil
}
