package cli

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// A configuration file has one setting a line, named as the flag without its
// dashes. Settings above the first section are for every command that has such
// a flag; a section named after a command is for that command alone and wins.
//
//	# holdfast.conf
//	acceptors = a:7001,b:7001,c:7001
//	timeline  = prod/main
//
//	[acceptor]
//	inbox-bytes = 16MiB
//
//	[wal export]
//	out = /var/lib/wal

// configFile is a parsed configuration file.
type configFile struct {
	path     string
	settings []fileSetting
}

type fileSetting struct {
	section string // command path without the program's name, "" for every command
	name    string
	value   string
	line    int
}

// configLineMax bounds a line of the file.
const configLineMax = 64 << 10

func parseConfig(path string, r io.Reader) (*configFile, error) {
	f := &configFile{path: path}
	section := ""
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, configLineMax)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '[' {
			if line[len(line)-1] != ']' {
				return nil, fmt.Errorf("%s:%d: section %q does not end with ]", path, n, line)
			}
			section = strings.Join(strings.Fields(line[1:len(line)-1]), " ")
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" {
			return nil, fmt.Errorf("%s:%d: expected NAME = VALUE, a [section] or a # comment", path, n)
		}
		if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
			value = value[1 : len(value)-1]
		}
		if prev := f.lookup(section, name); prev != nil {
			return nil, fmt.Errorf("%s:%d: %s is set a second time; the first is in line %d", path, n, name, prev.line)
		}
		f.settings = append(f.settings, fileSetting{section, name, value, n})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

func (f *configFile) lookup(section, name string) *fileSetting {
	for i := range f.settings {
		if s := &f.settings[i]; s.section == section && s.name == name {
			return s
		}
	}
	return nil
}
