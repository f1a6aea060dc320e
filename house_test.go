package holdfast

import (
	"errors"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The rules of the house that a compiler does not know. docs/ARCHITECTURE.md
// says why each of them is there.

// pureRooms hold rules only: no clock, no goroutine, no lock, no chance, no I/O.
var pureRooms = map[string]bool{"wal": true, "consensus": true}

// pureImports is all of the standard library that a pure room may use.
var pureImports = []string{"bytes", "cmp", "encoding/binary", "encoding/hex", "errors", "fmt", "hash/crc32", "iter", "math", "math/bits", "slices", "sort", "strconv", "strings"}

func TestPureRoomsStayPure(t *testing.T) {
	set, files := sources(t)
	for _, f := range files {
		if f.test || !pureRooms[f.dir] {
			continue
		}
		for _, spec := range f.syntax.Imports {
			p, _ := strconv.Unquote(spec.Path.Value)
			if !strings.HasPrefix(p, module) && !slices.Contains(pureImports, p) {
				t.Errorf("%s imports %q, which a pure room does not need", f.path, p)
			}
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s starts a goroutine", f.at(set, n.Pos()))
			case *ast.SelectStmt:
				t.Errorf("%s selects on channels", f.at(set, n.Pos()))
			case *ast.ChanType:
				t.Errorf("%s has a channel", f.at(set, n.Pos()))
			}
			return true
		})
	}
}

// TestNoMapOrderWhereItMatters: what a simulator replays must not depend on
// the order in which Go walks a map.
func TestNoMapOrderWhereItMatters(t *testing.T) {
	set, files := sources(t)
	for _, dir := range []string{"wal", "consensus"} {
		var syntax []*ast.File
		paths := map[string]goFile{}
		for _, f := range files {
			if f.dir == dir && !f.test {
				syntax = append(syntax, f.syntax)
				paths[f.path] = f
			}
		}
		info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
		check := types.Config{Importer: exportImporter(t, set, dir)}
		if _, err := check.Check(module+"/"+dir, set, syntax, info); err != nil {
			t.Fatal(err)
		}
		for _, file := range syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				loop, ok := n.(*ast.RangeStmt)
				if !ok {
					return true
				}
				if _, isMap := info.TypeOf(loop.X).Underlying().(*types.Map); isMap {
					t.Errorf("%s walks a map", set.Position(loop.Pos()))
				}
				return true
			})
		}
	}
}

// exportImporter reads what the compiler left of dir's imports.
func exportImporter(t *testing.T, set *token.FileSet, dir string) types.Importer {
	t.Helper()
	out, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./"+dir).Output()
	if err != nil {
		t.Fatalf("go list ./%s: %v", dir, err)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if pkg, file, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			exports[pkg] = file
		}
	}
	return importer.ForCompiler(set, "gc", func(pkg string) (io.ReadCloser, error) {
		if exports[pkg] == "" {
			return nil, errors.New("no export data for " + pkg)
		}
		return os.Open(exports[pkg])
	})
}

// calls reports whether n calls pkg.name, by the package's usual name.
func calls(n ast.Node, pkg, name string) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg && (name == "" || sel.Sel.Name == name)
}

// clockless rooms take time and chance from their caller, so that a simulator
// can be the caller. consensus and wal cannot even import the packages.
var clockless = map[string]bool{"storage": true, "storage/vfs": true}

func TestNoClockNoChanceInReplayedRooms(t *testing.T) {
	set, files := sources(t)
	for _, f := range files {
		if f.test || !clockless[f.dir] {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			for _, bad := range [][2]string{{"time", "Now"}, {"time", "Since"}, {"time", "Until"}, {"time", "Sleep"}, {"time", "After"}, {"time", "Tick"}, {"time", "NewTimer"}, {"time", "NewTicker"}} {
				if calls(n, bad[0], bad[1]) {
					t.Errorf("%s calls %s.%s: time is injected here", f.at(set, n.Pos()), bad[0], bad[1])
				}
			}
			return true
		})
	}
	for _, f := range files {
		for _, spec := range f.syntax.Imports {
			if p, _ := strconv.Unquote(spec.Path.Value); p == "math/rand" {
				t.Errorf("%s imports math/rand; use math/rand/v2 with a source of its own", f.path)
			}
		}
	}
}

func TestNoGlobalsThatRegister(t *testing.T) {
	set, files := sources(t)
	for _, f := range files {
		if f.generated {
			continue
		}
		for _, decl := range f.syntax.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s has an init function: what registers itself cannot be injected", f.at(set, fn.Pos()))
			}
			if vars, ok := decl.(*ast.GenDecl); ok && vars.Tok == token.VAR {
				ast.Inspect(vars, func(n ast.Node) bool {
					if calls(n, "prometheus", "") || calls(n, "promauto", "") {
						t.Errorf("%s makes a metric at package level", f.at(set, n.Pos()))
					}
					return true
				})
			}
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && (x.Name == "promauto" || x.Name == "prometheus" && slices.Contains([]string{"MustRegister", "Register", "DefaultRegisterer", "DefaultGatherer"}, sel.Sel.Name)) {
				t.Errorf("%s uses the global registry (%s.%s)", f.at(set, n.Pos()), x.Name, sel.Sel.Name)
			}
			return true
		})
	}
}

// httpRooms serve or ask HTTP; the others have no business with it.
var httpRooms = map[string]bool{"metrics": true, "acceptor": true, "proposer": true, "bridge": true, "cmd/holdfast": true, "fleet": true}

func TestHTTPStaysInItsRooms(t *testing.T) {
	_, files := sources(t)
	for _, f := range files {
		for _, spec := range f.syntax.Imports {
			p, _ := strconv.Unquote(spec.Path.Value)
			if p == "net/http" && !httpRooms[f.dir] && !strings.HasPrefix(f.dir, "bench") && !f.test {
				t.Errorf("%s imports net/http", f.path)
			}
		}
	}
}

// A file has one reason to exist. Most are short; none is long.
const (
	fileLinesUsual   = 300
	fileLinesMax     = 500
	fileShareAboveOK = 0.10
)

func TestFilesAreShortAndNamedForWhatTheyHold(t *testing.T) {
	_, files := sources(t)
	vague := []string{"util", "utils", "common", "misc", "helper", "helpers", "shared", "base", "pkg", "internal", "lib", "types", "stuff"}
	long, counted := 0, 0
	for _, f := range files {
		if f.generated {
			continue
		}
		for _, part := range strings.Split(strings.TrimSuffix(strings.TrimSuffix(f.path, ".go"), "_test"), "/") {
			if slices.Contains(vague, part) {
				t.Errorf("%s: %q names no reason to exist", f.path, part)
			}
		}
		if f.test {
			continue
		}
		counted++
		if f.lines > fileLinesMax {
			t.Errorf("%s has %d lines, more than %d: it has more than one reason to exist", f.path, f.lines, fileLinesMax)
		}
		if f.lines > fileLinesUsual {
			long++
		}
	}
	if float64(long) > fileShareAboveOK*float64(counted) {
		t.Errorf("%d of %d files have more than %d lines", long, counted, fileLinesUsual)
	}
}

// TestPackagesSayWhatTheyAre: every room begins with a package comment.
func TestPackagesSayWhatTheyAre(t *testing.T) {
	_, files := sources(t)
	documented := map[string]bool{}
	for _, f := range files {
		if f.test || f.generated {
			continue
		}
		documented[f.dir] = documented[f.dir] || f.syntax.Doc != nil
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package %s has no package comment; put one into %s", dir, path.Join(dir, "doc.go"))
		}
	}
}
