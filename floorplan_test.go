package holdfast

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/seed7f3f3bb8/holdfast"

// room is one package: what it may import of this module and of others. The
// standard library is open to all unless a rule below closes a part of it.
type room struct {
	imports []string // rooms below
	modules []string // import path prefixes of third parties
}

var grpcModules = []string{"google.golang.org/grpc", "google.golang.org/protobuf", "google.golang.org/genproto"}

// plan is the floor plan of docs/ARCHITECTURE.md. wal is open to every room. An
// arrow that is not here does not exist; a room that is not here has not been built.
var plan = map[string]room{
	// Ground.
	"wal": {},

	// Floor 1.
	"consensus":   {},
	"storage/vfs": {modules: []string{"golang.org/x/sys/unix"}},
	"storage":     {imports: []string{"storage/vfs"}},
	"metrics":     {modules: []string{"github.com/prometheus"}},
	"logsink":     {modules: []string{"go.uber.org/zap", "golang.org/x/sys/unix"}},
	"cli":         {modules: []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/sys/unix"}},

	// Floor 2.
	"flush":             {imports: []string{"consensus", "metrics"}},
	"proto":             {imports: []string{"consensus", "proto/holdfast/v1"}, modules: grpcModules},
	"proto/holdfast/v1": {modules: grpcModules},

	// Floor 3.
	"acceptor": {
		imports: []string{"flush", "storage", "storage/vfs", "proto", "proto/holdfast/v1", "consensus", "metrics"},
		modules: slices.Concat(grpcModules, []string{"go.uber.org/zap", "golang.org/x/sys/unix"}),
	},
	"proposer": {
		imports: []string{"consensus", "proto", "proto/holdfast/v1", "metrics"},
		modules: slices.Concat(grpcModules, []string{"go.uber.org/zap"}),
	},
	"admin": {imports: []string{"consensus", "proto", "proto/holdfast/v1"}, modules: grpcModules},

	// Floor 4. The bridge is a suite; whatever inner rooms it has obey its line.
	"bridge": {
		imports: []string{"bridge/...", "proposer", "admin", "consensus", "metrics"},
		modules: []string{"go.uber.org/zap", "github.com/jackc/pgx"},
	},
	"bridge/pgwal":  {},
	"bridge/pgwire": {},
	"workload":      {imports: []string{"proposer", "admin", "bridge/pgwal"}},
	"fleet":         {imports: []string{"logsink"}, modules: []string{"golang.org/x/sys/unix"}},

	// What tests of whole machines stand on; only the roof uses it.
	"leftovers": {modules: []string{"golang.org/x/sys/unix"}},
	"blockdev":  {imports: []string{"leftovers"}, modules: []string{"github.com/hanwen/go-fuse", "golang.org/x/sys/unix"}},

	// Roof. Nobody imports these, but that the program can show a simulation.
	"cmd/holdfast": {imports: slices.Concat(everyRoom, []string{"sim"}), modules: anyModule},
	"sim":          {imports: everyRoom, modules: anyModule},
	"bench":        {imports: everyRoom, modules: anyModule},
	"check":        {imports: everyRoom, modules: anyModule},
	"crashimage":   {imports: everyRoom, modules: anyModule},
	"nemesis":      {imports: everyRoom, modules: anyModule},
	"mutation":     {}, // it runs the other rooms' tests and knows none of them

	// The programs of the two lanes that need one of their own.
	"cmd/crashimage": {imports: []string{"*", "crashimage"}, modules: anyModule},
	"cmd/nemesis":    {imports: []string{"*", "nemesis"}, modules: anyModule},
}

var (
	everyRoom = []string{"*"}
	anyModule = []string{""}
)

// roomOf finds the line of the plan for a directory: its own, or that of the suite it belongs to.
func roomOf(dir string) (room, bool) {
	for {
		if r, ok := plan[dir]; ok {
			return r, true
		}
		outer := path.Dir(dir)
		if outer == "." || dir == "" {
			return room{}, false
		}
		dir = outer
	}
}

// mayImport reports whether an arrow from one package of the module to another is drawn.
func (r room) mayImport(target string) bool {
	if target == "wal" || slices.Contains(r.imports, target) {
		return true
	}
	if suite, _, inner := strings.Cut(target, "/"); inner && slices.Contains(r.imports, suite+"/...") {
		return true
	}
	return slices.Contains(r.imports, "*") && !isRoof(target)
}

func (r room) mayUse(path string) bool {
	return slices.ContainsFunc(r.modules, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
}

func isRoof(dir string) bool {
	return dir == "sim" || dir == "mutation" || dir == "check" || dir == "crashimage" || dir == "nemesis" || strings.HasPrefix(dir, "cmd/") || strings.HasPrefix(dir, "bench")
}

// goFile is one parsed source file of the module.
type goFile struct {
	path      string // from the module's root
	dir       string // "" for the root
	test      bool
	generated bool
	syntax    *ast.File
	lines     int
}

// at says where in the file a node stands.
func (f goFile) at(set *token.FileSet, pos token.Pos) string {
	return f.path + ":" + strconv.Itoa(set.Position(pos).Line)
}

func sources(t *testing.T) (*token.FileSet, []goFile) {
	t.Helper()
	set := token.NewFileSet()
	var files []goFile
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if p != "." && (name[0] == '.' || name[0] == '_' || name == "testdata" || name == "tools") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		syntax, err := parser.ParseFile(set, p, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := path.Dir(filepath.ToSlash(p))
		if dir == "." {
			dir = ""
		}
		files = append(files, goFile{
			path: filepath.ToSlash(p), dir: dir, test: strings.HasSuffix(name, "_test.go"),
			generated: ast.IsGenerated(syntax), syntax: syntax, lines: set.File(syntax.FileStart).LineCount(),
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return set, files
}

func isStandard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

// TestFloorPlan reads the import graph and rejects every arrow that is not drawn.
// Test files may reach further (a client's test needs a server), but never to the roof.
func TestFloorPlan(t *testing.T) {
	_, files := sources(t)
	for _, f := range files {
		dir := f.dir
		here, built := roomOf(dir)
		if !built && dir != "" {
			t.Errorf("%s: the floor plan has no room %q; see docs/ARCHITECTURE.md", f.path, dir)
			continue
		}
		for _, spec := range f.syntax.Imports {
			target, _ := strconv.Unquote(spec.Path.Value)
			inner, ours := strings.CutPrefix(target, module+"/")
			switch {
			case ours && f.test && isRoof(inner) && !isRoof(dir):
				t.Errorf("%s imports %s: not even a test reaches for the roof", f.path, inner)
			case f.test:
			case ours && !here.mayImport(inner):
				t.Errorf("%s imports %s: the floor plan has no arrow from %s to %s", f.path, inner, dir, inner)
			case !ours && !isStandard(target) && !here.mayUse(target):
				t.Errorf("%s imports %s: the floor plan does not give %s that module", f.path, target, dir)
			}
		}
	}
}

// TestFloorPlanOnlyLeadsDown checks the plan itself: no cycle.
func TestFloorPlanOnlyLeadsDown(t *testing.T) {
	const visiting, done = 1, 2
	state := map[string]int{}
	var visit func(name string, trail []string)
	visit = func(name string, trail []string) {
		if state[name] == visiting {
			t.Fatalf("the floor plan has a cycle: %s", strings.Join(append(trail, name), " -> "))
		}
		if state[name] == done {
			return
		}
		state[name] = visiting
		for _, next := range plan[name].imports {
			if _, built := plan[next]; next != "*" && !strings.HasSuffix(next, "/...") && !built {
				t.Errorf("%s may import %s, which is no room", name, next)
			}
			visit(next, append(trail, name))
		}
		state[name] = done
	}
	for name := range plan {
		visit(name, nil)
	}
}
