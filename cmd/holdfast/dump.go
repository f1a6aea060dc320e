package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/storage"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

func newDump(a *app) *cobra.Command {
	var asJSON, frames bool
	cmd := &cobra.Command{
		Use:   "dump DIR",
		Short: "Show what is on a disk: offline, read-only, also when it is damaged",
		Long: `Show every segment and frame under a data directory or one timeline's directory,
as they stand: also what does not count any more, and what is damaged. Nothing
is changed and nothing needs to be healthy. With --json each line is one
document. Exit code 6 says that something damaged was seen; a torn tail that a
crash left looks like that too, the acceptor tells them apart when it opens the log.`,
		Example: `  holdfast dump /var/lib/holdfast
  holdfast dump /var/lib/holdfast/prod/main --frames
  holdfast dump /var/lib/holdfast/prod/main --frames --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dirs, err := segmentDirs(args[0])
			if err != nil {
				return err
			}
			if len(dirs) == 0 {
				return cli.Errorf(cli.NotFound, "there are no segments under %s", args[0])
			}
			d := dumper{out: a, asJSON: asJSON, frames: frames}
			for _, dir := range dirs {
				if err := d.dir(dir); err != nil {
					return err
				}
			}
			if d.damaged > 0 {
				return cli.Errorf(cli.Corruption, "%d damaged or torn places", d.damaged)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document a line")
	cmd.Flags().BoolVar(&frames, "frames", false, "show every frame, not only the states")
	return cmd
}

const (
	segmentSuffix = ".seg"
	spareDir      = "spare.d"
)

// segmentDirs finds the directories at or below dir that hold a timeline's
// segments: also one that was put aside because it is damaged, but not spare segments.
func segmentDirs(dir string) ([]string, error) {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != dir && d.Name() == spareDir {
			return filepath.SkipDir
		}
		parent := filepath.Dir(path)
		if !d.IsDir() && strings.HasSuffix(path, segmentSuffix) && (len(dirs) == 0 || dirs[len(dirs)-1] != parent) {
			dirs = append(dirs, parent)
		}
		return nil
	})
	return dirs, err
}

// dumper prints what Inspect shows.
type dumper struct {
	out     *app
	asJSON  bool
	frames  bool
	damaged int
}

// line is one line of "dump --json"; what does not belong to its kind is left out.
type line struct {
	Dir    string     `json:"dir,omitempty"`
	File   string     `json:"file,omitempty"`
	Bytes  int64      `json:"bytes"`
	Error  string     `json:"error,omitempty"`
	Kind   string     `json:"kind,omitempty"`
	Offset int64      `json:"offset,omitempty"`
	Gap    bool       `json:"gap,omitempty"`
	Seq    uint64     `json:"seq,omitempty"`
	Term   wal.Term   `json:"term,omitempty"`
	Begin  *wal.LSN   `json:"begin,omitempty"`
	End    *wal.LSN   `json:"end,omitempty"`
	Commit *wal.LSN   `json:"commit,omitempty"`
	Intact *bool      `json:"intact,omitempty"`
	State  *wal.State `json:"state,omitempty"`
}

// fileTotal sums up the frames of one file that are not shown one by one.
type fileTotal struct {
	frames, data int
	begin, end   wal.LSN
}

func (d *dumper) dir(dir string) error {
	if err := d.print(line{Dir: dir}, "%s", dir); err != nil {
		return err
	}
	var total fileTotal
	file := ""
	sum := func() error {
		if d.frames || d.asJSON || total.frames == 0 {
			return nil
		}
		t := total
		total = fileTotal{}
		return d.print(line{}, "    %d frames, %d with data, [%v, %v)", t.frames, t.data, t.begin, t.end)
	}
	err := storage.Inspect(vfs.OS{}, dir, func(f storage.FileInfo) error {
		if err := sum(); err != nil {
			return err
		}
		file = f.Name
		l := line{File: f.Name, Bytes: f.Bytes}
		text := fmt.Sprintf("  %s  %s  nonce %016x", f.Name, cli.Bytes(f.Bytes).Human(), f.Nonce)
		if f.Err != nil {
			l.Error = f.Err.Error()
			text = fmt.Sprintf("  %s  %s  %v", f.Name, cli.Bytes(f.Bytes).Human(), f.Err)
			d.damaged++
		}
		return d.print(l, "%s", text)
	}, func(f storage.FrameInfo) error {
		total.add(f)
		if f.Gap || !f.Intact {
			d.damaged++
		} else if !d.frames && f.Kind == "data" {
			return nil
		}
		return d.frame(file, f)
	})
	return errors.Join(err, sum())
}

func (t *fileTotal) add(f storage.FrameInfo) {
	if t.frames++; f.Kind != "data" {
		return
	}
	if t.data++; t.data == 1 {
		t.begin, t.end = f.Begin, f.End
	}
	t.begin, t.end = min(t.begin, f.Begin), max(t.end, f.End)
}

func (d *dumper) frame(file string, f storage.FrameInfo) error {
	l := line{File: file, Bytes: int64(f.Bytes), Kind: f.Kind, Offset: f.Offset, Gap: f.Gap, Seq: f.Seq, Term: f.Term,
		Begin: &f.Begin, End: &f.End, Commit: &f.Commit, Intact: &f.Intact, State: f.State}
	var b strings.Builder
	fmt.Fprintf(&b, "    %10d  %-5s  seq %d  term %d  [%v, %v)  commit %v", f.Offset, f.Kind, f.Seq, f.Term, f.Begin, f.End, f.Commit)
	if f.Gap {
		b.WriteString("  BEHIND A GAP")
	}
	if !f.Intact {
		b.WriteString("  DAMAGED PAYLOAD")
	}
	if s := f.State; s != nil {
		fmt.Fprintf(&b, "\n                state: creation %v, vote in term %d for %v, horizon %v", s.Creation, s.Term, s.VotedFor, s.Horizon)
		for _, p := range s.History {
			fmt.Fprintf(&b, ", term %d from %v", p.Term, p.LSN)
		}
	}
	return d.print(l, "%s", b.String())
}

func (d *dumper) print(l line, format string, args ...any) error {
	if d.asJSON {
		return json.NewEncoder(d.out.Out).Encode(l)
	}
	_, err := fmt.Fprintf(d.out.Out, format+"\n", args...)
	return err
}
