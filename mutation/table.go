package main

import (
	"fmt"
	"os"
	"strings"
)

const (
	tableBegin = "<!-- mutation table: go run ./mutation -table docs/evidence.md -->\n"
	tableEnd   = "<!-- end of the mutation table -->\n"
)

// writeTable puts the table between its two marks in a file.
func writeTable(path string, done []outcome) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(b), tableBegin)
	_, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no place for the table: it needs the lines %q and %q", path, tableBegin, tableEnd)
	}
	var t strings.Builder
	killed, argued := 0, 0
	for _, o := range done {
		switch o.lane {
		case "SURVIVED", "BROKEN":
		case "equivalent":
			argued++
		default:
			killed++
		}
	}
	fmt.Fprintf(&t, "\n%d mutants, %d killed, %d argued equivalent, score %d %%.\n\n| mutant | what is wrong | killed by | after |\n|---|---|---|---|\n", len(done), killed, argued, 100*killed/max(1, len(done)-argued))
	for _, o := range done {
		if o.equivalent != "" {
			o.why += " *Argued: " + o.equivalent + "*"
		}
		fmt.Fprintf(&t, "| `%s` | %s | %s | %.0f s |\n", o.name, strings.ReplaceAll(o.why, "|", "\\|"), o.lane, o.took.Seconds())
	}
	return os.WriteFile(path, []byte(before+tableBegin+t.String()+"\n"+tableEnd+after), 0o644)
}
