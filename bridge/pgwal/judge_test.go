package pgwal

import (
	"errors"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

func TestJudge(t *testing.T) {
	one := Ancestry{{1, 0}}
	two := Ancestry{{1, 0}, {2, 0x500}}
	otherTwo := Ancestry{{1, 0}, {2, 0x400}}
	three := Ancestry{{1, 0}, {2, 0x500}, {3, 0x700}}
	threeSkipping := Ancestry{{1, 0}, {3, 0x500}}
	for name, c := range map[string]struct {
		stored   Ancestry // nil: nobody has written
		end, may wal.LSN
		partial  bool // it is not known that all of it is committed
		server   Ancestry
		flush    wal.LSN
		refusal  Refusal
		retry    bool
		start    wal.LSN
		tli      TLI
	}{
		"new log, server ahead":                        {nil, 0x100, 0x100, false, one, 0x180, "", false, 0x100, 1},
		"new log on an older timeline of the server":   {nil, 0x100, 0x100, false, two, 0x600, "", false, 0x100, 1},
		"new log, server has not got there":            {nil, 0x100, 0x100, false, one, 0x80, Behind, false, 0, 0},
		"same timeline, level":                         {one, 0x300, 0x300, false, one, 0x300, "", false, 0x300, 1},
		"same timeline, server ahead after a restart":  {one, 0x300, 0x200, false, one, 0x900, "", false, 0x300, 1},
		"same timeline, server behind":                 {one, 0x300, 0x200, false, one, 0x2FF, Behind, false, 0, 0},
		"promotion above the log's end":                {one, 0x300, 0x300, false, two, 0x800, "", false, 0x300, 1},
		"promotion exactly at the end":                 {one, 0x500, 0x500, false, two, 0x800, "", false, 0x500, 1},
		"promotion between commit and end":             {one, 0x600, 0x4F0, false, two, 0x800, "", false, 0x500, 1},
		"promotion at the commit position":             {one, 0x600, 0x500, false, two, 0x800, "", false, 0x500, 1},
		"promotion below it":                           {one, 0x600, 0x501, false, two, 0x800, BelowCommit, false, 0, 0},
		"promotion below it, a member is missing":      {one, 0x600, 0x501, true, two, 0x800, BelowCommit, true, 0, 0},
		"two promotions, the first below":              {one, 0x600, 0x600, false, three, 0x800, BelowCommit, false, 0, 0},
		"two promotions, the second between":           {two, 0x780, 0x600, false, three, 0x800, "", false, 0x700, 2},
		"old primary returns":                          {two, 0x600, 0x600, false, one, 0x900, Stale, false, 0, 0},
		"old primary returns before the new one wrote": {two, 0x500, 0x500, false, one, 0x900, Stale, false, 0, 0},
		"recorded but nothing stored of it":            {two, 0x4FF, 0x4FF, false, one, 0x900, "", false, 0x4FF, 1},
		"promoted twice to the same number":            {two, 0x600, 0x600, false, otherTwo, 0x900, Stale, false, 0, 0},
		"newer, but of another line":                   {two, 0x600, 0x600, false, threeSkipping, 0x900, Stale, false, 0, 0},
		"descendant":                                   {two, 0x600, 0x600, false, three, 0x900, "", false, 0x600, 2},
	} {
		l := Log{Properties: Properties{SystemID: 1, Segment: 1 << 20, VersionMajor: 15, Ancestry: c.stored}, Written: c.stored != nil, End: c.end, MayBeCommitted: c.may, Commit: c.may}
		if c.partial {
			l.Commit = 0
		}
		v, err := Judge(l, Server{SystemID: 1, Segment: 1 << 20, VersionMajor: 15, Ancestry: c.server, Flush: c.flush})
		if c.refusal == "" {
			if err != nil || v != (Verdict{c.start, c.tli}) {
				t.Errorf("%s: %+v, %v", name, v, err)
			}
			continue
		}
		var refused *RefusedError
		if !errors.As(err, &refused) || refused.Refusal != c.refusal || refused.Final == c.retry {
			t.Errorf("%s: %v (final %v); want %q", name, err, refused != nil && refused.Final, c.refusal)
		}
	}
}

func TestJudgeRefusesOtherClusters(t *testing.T) {
	p := Properties{SystemID: 1, Segment: 1 << 20, VersionMajor: 15, Ancestry: Ancestry{{1, 0}}}
	for _, s := range []Server{
		{2, 1 << 20, 15, p.Ancestry, 9}, {1, 2 << 20, 15, p.Ancestry, 9}, {1, 1 << 20, 16, p.Ancestry, 9},
	} {
		_, err := Judge(Log{Properties: p, Written: true}, s)
		var refused *RefusedError
		if !errors.As(err, &refused) || refused.Refusal != Foreign || !refused.Final {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

func TestJudgeAfterAFence(t *testing.T) {
	two := Ancestry{{1, 0}, {2, 0x500}}
	p := Properties{SystemID: 1, Segment: 1 << 20, VersionMajor: 15, Ancestry: Ancestry{{1, 0}}, Fenced: true}
	l := Log{Properties: p, Written: true, End: 0x500, MayBeCommitted: 0x500, Commit: 0x500}
	s := Server{1, 1 << 20, 15, p.Ancestry, 0x900}
	var refused *RefusedError
	if _, err := Judge(l, s); !errors.As(err, &refused) || refused.Refusal != Shut {
		t.Error("the old primary:", err)
	}
	l.Unfence = true
	if _, err := Judge(l, s); err != nil {
		t.Error("with --unfence:", err)
	}
	l.Unfence, s.Ancestry = false, two
	if v, err := Judge(l, s); err != nil || v.Start != 0x500 {
		t.Error("a recovered server:", v, err)
	}
}
