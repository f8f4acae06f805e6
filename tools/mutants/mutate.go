package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A mutant is one change of one token.
type mutant struct {
	file, function string // the file as a slash-separated path from the module
	code           string // the line, with the change in brackets
	offset         int
	old, new       string
}

// What each operator is exchanged for: what is at its boundary, its opposite, its
// neighbour. The empty text removes it.
var exchanges = map[token.Token][]string{
	token.LSS: {"<=", ">="}, token.LEQ: {"<", ">"}, token.GTR: {">=", "<="}, token.GEQ: {">", "<"},
	token.EQL: {"!="}, token.NEQ: {"=="}, token.LAND: {"||"}, token.LOR: {"&&"}, token.NOT: {""},
	token.ADD: {"-"}, token.SUB: {"+"}, token.MUL: {"/"}, token.QUO: {"*"}, token.REM: {"*"},
	token.AND: {"|"}, token.OR: {"&"}, token.XOR: {"&"}, token.AND_NOT: {"&"}, token.SHL: {">>"}, token.SHR: {"<<"},
	token.INC: {"--"}, token.DEC: {"++"}, token.BREAK: {"continue"}, token.CONTINUE: {"break"},
	token.ADD_ASSIGN: {"-=", "="}, token.SUB_ASSIGN: {"+=", "="}, token.MUL_ASSIGN: {"/=", "="}, token.QUO_ASSIGN: {"*=", "="},
	token.REM_ASSIGN: {"*=", "="}, token.AND_ASSIGN: {"|=", "="}, token.OR_ASSIGN: {"&=", "="}, token.XOR_ASSIGN: {"&=", "="},
	token.AND_NOT_ASSIGN: {"&=", "="}, token.SHL_ASSIGN: {">>=", "="}, token.SHR_ASSIGN: {"<<=", "="},
}

// mutantsOf returns the mutants of a file. Those of a function that are written
// alike are numbered.
func mutantsOf(root, file string) ([]mutant, error) {
	source, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var all []mutant
	alike := map[string]int{}
	for _, declaration := range tree.Decls {
		for node := range ast.Preorder(declaration) {
			position, operator := operatorOf(node)
			at := set.Position(position)
			for _, other := range exchanges[operator] {
				m := mutant{file: file, function: nameOf(declaration), offset: at.Offset, old: operator.String(), new: other}
				m.code = marked(string(source), m)
				if alike[m.row()]++; alike[m.row()] > 1 {
					m.code += fmt.Sprintf(" (%d)", alike[m.row()])
				}
				all = append(all, m)
			}
		}
	}
	return all, nil
}

// operatorOf returns the token of a node that can be exchanged. One that joins
// texts cannot: there is no other.
func operatorOf(node ast.Node) (token.Pos, token.Token) {
	switch n := node.(type) {
	case *ast.BinaryExpr:
		if !isText(n) {
			return n.OpPos, n.Op
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			return n.OpPos, n.Op
		}
	case *ast.IncDecStmt:
		return n.TokPos, n.Tok
	case *ast.AssignStmt:
		return n.TokPos, n.Tok
	case *ast.BranchStmt:
		return n.TokPos, n.Tok
	}
	return token.NoPos, token.ILLEGAL
}

func isText(expression ast.Expr) bool {
	switch e := expression.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING
	case *ast.BinaryExpr:
		return e.Op == token.ADD && (isText(e.X) || isText(e.Y))
	}
	return false
}

// nameOf returns the name of a function, with that of its receiver's type.
func nameOf(declaration ast.Decl) string {
	f, ok := declaration.(*ast.FuncDecl)
	if !ok {
		return "declarations"
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	return strings.TrimPrefix(types.ExprString(f.Recv.List[0].Type), "*") + "." + f.Name.Name
}

func marked(source string, m mutant) string {
	start := strings.LastIndexByte(source[:m.offset], '\n') + 1
	line, _, _ := strings.Cut(source[start:], "\n")
	at := m.offset - start
	return strings.Join(strings.Fields(line[:at]+"["+m.old+" → "+m.new+"]"+line[at+len(m.old):]), " ")
}

func (m mutant) apply(source []byte) []byte {
	return slices.Concat(source[:m.offset], []byte(m.new), source[m.offset+len(m.old):])
}
