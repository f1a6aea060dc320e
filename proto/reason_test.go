package proto

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/consensus"
)

// TestEveryReasonHasACode reads the reasons from the source, so that a new one
// cannot travel as UNKNOWN.
func TestEveryReasonHasACode(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../consensus/errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); !ok || name.Name != "Reason" {
			return true
		}
		for _, v := range spec.Values {
			text, err := strconv.Unquote(v.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			found++
			if _, ok := codeOf[consensus.Reason(text)]; !ok {
				t.Errorf("%s has no code; give it one in codeOf", text)
			}
		}
		return true
	})
	if found == 0 {
		t.Error("no reason was found in consensus/errors.go")
	}
}
