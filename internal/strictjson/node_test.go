package strictjson_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/strictjson"
)

// nodeOf reads a value as the result in a document.
func nodeOf(t testing.TB, result string) strictjson.Node {
	t.Helper()
	d := decoderOf(`{"result":`+result+`}`, strictjson.Options{Redactor: redactor()})
	d.BeginDocument()
	require.Equal(t, "result", string(d.Name()))
	value := strictjson.Raw(d)
	node := strictjson.NodeOf(d, value)
	d.End()
	d.EndDocument()
	require.Nil(t, d.Err())
	return node
}

func TestNode_Kind(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]jsontext.Kind{`null`: 'n', `true`: 't', `false`: 'f', `"x"`: '"', `-1.5`: '0', `{}`: '{', `[]`: '['} {
		assert.Equal(t, want, nodeOf(t, text).Kind(), text)
		assert.False(t, nodeOf(t, text).IsZero(), text)
	}
	assert.True(t, strictjson.Node{}.IsZero())
	assert.Zero(t, strictjson.Node{}.Kind())
}

func TestNode_Members(t *testing.T) {
	t.Parallel()
	node := nodeOf(t, " { \"a\" : 1 ,\n\"\\u0062\":\"x\" , \"c/d\": { \"e\":[ true ]} , \"\":null } ")
	members := slices.Collect(node.Members())
	require.Len(t, members, 4)
	var names, pointers []string
	for _, m := range members {
		names, pointers = append(names, m.Name()), append(pointers, m.Errorf("x").Pointer)
	}
	assert.Equal(t, []string{"a", "b", "c/d", ""}, names)
	assert.Equal(t, []string{"/result/a", "/result/b", "/result/c~1d", "/result/"}, pointers)
	amount, err := members[0].Amount()
	require.NoError(t, err)
	assert.Equal(t, "1", amount.String())
	assert.Equal(t, "x", members[1].Text())
	assert.Equal(t, jsontext.Kind('n'), members[3].Kind())
	inner := slices.Collect(members[2].Member("e").Elements())
	require.Len(t, inner, 1)
	assert.Equal(t, "/result/c~1d/e/0", inner[0].Errorf("x").Pointer)
	assert.Equal(t, jsontext.Kind('t'), inner[0].Kind())

	for _, text := range []string{`{}`, `[{"a":1}]`, `"a"`, `1`, `null`, `true`} {
		assert.Empty(t, slices.Collect(nodeOf(t, text).Members()), text)
	}
	assert.Empty(t, slices.Collect(strictjson.Node{}.Members()))
}

func TestNode_Elements(t *testing.T) {
	t.Parallel()
	var pointers, texts []string
	for n := range nodeOf(t, ` [ "a" , "b" ,["c"] ] `).Elements() {
		pointers, texts = append(pointers, n.Errorf("x").Pointer), append(texts, n.Text())
		assert.Empty(t, n.Name(), "an element has no name")
	}
	assert.Equal(t, []string{"/result/0", "/result/1", "/result/2"}, pointers)
	assert.Equal(t, []string{"a", "b", ""}, texts)
	for _, text := range []string{`[]`, `{"a":[1]}`, `"a"`, `1`, `null`} {
		assert.Empty(t, slices.Collect(nodeOf(t, text).Elements()), text)
	}
	assert.Empty(t, slices.Collect(strictjson.Node{}.Elements()))
	for n := range nodeOf(t, `[1,2]`).Elements() {
		assert.Equal(t, "/result/0", n.Errorf("x").Pointer, "a caller may stop at the first")
		break
	}
}

func TestNode_Name(t *testing.T) {
	t.Parallel()
	root := nodeOf(t, `{"a":1}`)
	assert.Empty(t, root.Name(), "the name of the result is not a name within it")
	assert.Equal(t, "/result", root.Errorf("x").Pointer)
}

func TestNode_Find(t *testing.T) {
	t.Parallel()
	record := nodeOf(t, `[{"a":1,"b":2,"B":3,"\u0063":{"a":4}}]`)
	for n := range record.Elements() {
		found := make([]strictjson.Node, 4)
		n.Find([]string{"B", "x", "c", "a"}, found)
		assert.Equal(t, []string{"B", "", "c", "a"}, []string{found[0].Name(), found[1].Name(), found[2].Name(), found[3].Name()})
		assert.True(t, found[1].IsZero())
		assert.Equal(t, "/result/0/a", found[3].Errorf("x").Pointer)
		assert.Equal(t, "/result/0/c/a", found[2].Member("a").Errorf("x").Pointer)
		assert.True(t, n.Member("A").IsZero())
		assert.True(t, found[3].Member("a").IsZero(), "a number has no members")
	}
}

// Members are read side by side and one within the other, at any depth.
func TestNode_nested(t *testing.T) {
	t.Parallel()
	root := nodeOf(t, `{"a":{"b":{"c":{"d":{"e":1}}}},"f":{"g":2}}`)
	var places []string
	for outer := range root.Members() {
		for again := range root.Members() {
			for inner := range again.Members() {
				places = append(places, outer.Name()+inner.Errorf("x").Pointer)
			}
		}
	}
	assert.Equal(t, []string{"a/result/a/b", "a/result/f/g", "f/result/a/b", "f/result/f/g"}, places)
	deepest := root.Member("a").Member("b").Member("c").Member("d")
	assert.Equal(t, "/result/a/b/c/d", deepest.Errorf("x").Pointer)
	assert.Equal(t, "/result/a/b/c/d/e", deepest.Member("e").Errorf("x").Pointer)
}

// What is noted in the elements of an array is noted once, at the first.
func TestNode_Note(t *testing.T) {
	t.Parallel()
	notes := &strictjson.Notes{}
	d := decoderOf(`[{"a":1},{"a":2,"b":3},{"a":4}]`, strictjson.Options{Notes: notes})
	for n := range strictjson.NodeOf(d, strictjson.Raw(d)).Elements() {
		for m := range n.Members() {
			m.Note(strictjson.UnknownField)
		}
		n.Note(strictjson.UnexpectedValue)
	}
	assert.Equal(t, []strictjson.Note{
		{Kind: strictjson.UnknownField, Pointer: "/0/a"}, {Kind: strictjson.UnexpectedValue, Pointer: "/0"}, {Kind: strictjson.UnknownField, Pointer: "/1/b"},
	}, notes.All())
	nodeOf(t, `[1]`).Note(strictjson.UnknownField) // without Notes nothing is noted
}

// What is noted in members of different objects is noted in each.
func TestNode_Note_members(t *testing.T) {
	t.Parallel()
	notes := &strictjson.Notes{}
	d := decoderOf(`{"x":{"a":1},"y":{"a":2}}`, strictjson.Options{Notes: notes})
	for n := range strictjson.NodeOf(d, strictjson.Raw(d)).Members() {
		n.Member("a").Note(strictjson.UnknownField)
	}
	assert.Equal(t, []strictjson.Note{
		{Kind: strictjson.UnknownField, Pointer: "/x/a"}, {Kind: strictjson.UnknownField, Pointer: "/y/a"},
	}, notes.All())
}

// What is noted before is not looked for again: to find the place of an element takes as long as the
// array is. This counts allocations, which a pointer makes.
func TestNode_Note_again(t *testing.T) {
	for _, text := range []string{`[%s]`, `{"list":[%s]}`, `{"a":{"list":[[%s]]}}`} {
		notes := &strictjson.Notes{}
		d := decoderOf(fmt.Sprintf(text, strings.Repeat("{},", 1000)+"{}"), strictjson.Options{Notes: notes})
		n := strictjson.NodeOf(d, strictjson.Raw(d))
		for last := n; !last.IsZero(); {
			n, last = last, strictjson.Node{}
			for in := range n.Elements() {
				last = in
			}
			for in := range n.Members() {
				last = in
			}
		}
		n.Note(strictjson.UnexpectedValue)
		assert.Zero(t, testing.AllocsPerRun(10, func() { n.Note(strictjson.UnexpectedValue) }), text)
		assert.Len(t, notes.All(), 1, text)
	}
}

func TestNode_Len(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{`[]`: 0, `{}`: 0, `[1]`: 1, `[1,[2,3],{}]`: 3, `{"a":1,"b":[2]}`: 2, `"x"`: 0, `7`: 0, `null`: 0} {
		assert.Equal(t, want, nodeOf(t, text).Len(), text)
	}
}

func TestNode_Text(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{`"a"`: "a", `"\u0061\n"`: "a\n", `""`: "", `1`: "", `null`: "", `["a"]`: "", `{"a":"a"}`: ""} {
		assert.Equal(t, want, nodeOf(t, text).Text(), text)
	}
	assert.Empty(t, strictjson.Node{}.Text())
}

func TestNode_Errorf(t *testing.T) {
	t.Parallel()
	err := nodeOf(t, `[1]`).Errorf("is %d of %w", 7, strictjson.ErrMismatch)
	assert.EqualError(t, err.Err, "is 7 of "+strictjson.ErrMismatch.Error())
	assert.ErrorIs(t, err.Err, strictjson.ErrMismatch)
	assert.False(t, err.Syntax)
	for _, tt := range []struct {
		name, member string
		want         int
	}{
		{"a pointer of 1 KiB", strings.Repeat("n", 1<<10-len("/result/")), 1 << 10},
		{"one byte more", strings.Repeat("n", 1<<10-len("/result/")+1), 1 << 10},
		{"much more, in characters of two bytes", strings.Repeat("é", 1<<20), 1 << 10},
		{"a character across the bound", "n" + strings.Repeat("é", 1<<20), 1<<10 - 1},
	} {
		pointer := nodeOf(t, fmt.Sprintf(`{%q:1}`, tt.member)).Member(tt.member).Errorf("x").Pointer
		assert.Len(t, pointer, tt.want, tt.name)
		assert.True(t, strings.HasPrefix("/result/"+tt.member, pointer), tt.name)
	}
}

// The keys are gone from the value, so that they are in no name, text or pointer.
func TestNode_key(t *testing.T) {
	t.Parallel()
	members := slices.Collect(nodeOf(t, `{"`+canary+`":"`+canary+`","`+canary+`x":[1]}`).Members())
	require.Len(t, members, 2)
	for _, m := range members {
		assert.NotContains(t, m.Name()+m.Text()+m.Errorf("x").Pointer, canary)
	}
}
