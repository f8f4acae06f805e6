package strictjson_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/strictjson"
)

// seeds are texts, good and bad.
func seeds() []string {
	return []string{
		``, ` `, mark, `null`, `[]`, `{}`, `"x"`, `1`, `[1,"2",{"amount":3}]`, `{"a":{"b":[{"c":null}]}}`, `{"a":`, `[[[[`,
		wholeJSON(), "[" + wholeJSON() + "]", "[" + wholeJSON() + "," + wholeJSON() + "," + wholeJSON() + "]", mark + wholeJSON(),
		object(wholeMembers(), "price", `1e64`), object(wholeMembers(), "price", `"1e-99999999999"`), object(wholeMembers(), "price", `null`),
		object(wholeMembers(), "count", `1.0`), object(wholeMembers(), "count", `9999999999999999999`), object(wholeMembers(), "open", `"true"`),
		object(wholeMembers(), "at", `"2024-01-02 03:04:05"`), object(wholeMembers(), "at", ``), object(wholeMembers(), "at", `"0000-01-01 00:00:00+01:00"`), object(wholeMembers(), "price", `15e2`), object(wholeMembers(), "partId", `"p-2"`),
		object(wholeMembers(), "part", `{"id":"p-1"}`), object(wholeMembers(), "state", `"\u0044ONE"`), object(wholeMembers(), "name", `"`+canary+`"`),
		`{"a":1,"a":2}`, `{"\u0061":1,"a":2}`, `{}x`, `{}{}`, "{\"a\":\"\xff\"}", `{"a":"\ud800"}`,
		`{"` + canary + `":1,"\u0043` + canary[1:] + `":nope}`, `{"` + canary + `":{"` + canary + `":"` + canary + `"}}`,
		`{"a/b":{"c~d":[{"":1}]}}`, strings.Repeat(`{"a":`, 50) + strings.Repeat("[", 50), strings.Repeat(`{"v":1},`, 5),
	}
}

// A reading is what a text was read as.
type reading struct {
	value   any
	err     *strictjson.Error
	content strictjson.Content
	notes   []strictjson.Note
	leftOut []strictjson.LeftOut
}

// readers are the ways to read a result.
func readers() map[string]func(*strictjson.Decoder) any {
	one, many, both := strictjson.One(wholeRecord), strictjson.Many(wholeRecord, "/name", "/part/id"), strictjson.OneOrMany(wholeRecord)
	return map[string]func(*strictjson.Decoder) any{
		"One":       func(d *strictjson.Decoder) any { return one(d) },
		"Many":      func(d *strictjson.Decoder) any { return many(d) },
		"OneOrMany": func(d *strictjson.Decoder) any { return both(d) },
		"Raw":       func(d *strictjson.Decoder) any { return strictjson.Raw(d) },
	}
}

// readFrom reads a text with a Decoder that may have read another.
func readFrom(d *strictjson.Decoder, text []byte, read func(*strictjson.Decoder) any) reading {
	notes := &strictjson.Notes{}
	d.Reset(text, strictjson.Options{Redactor: redactor(), Notes: notes})
	value := read(d)
	d.EndDocument()
	d.NoteError()
	return reading{value, d.Err(), d.Content(), notes.All(), d.LeftOut()}
}

// Whatever a text is, it is read or has an error, within bounds and without the key. It does
// not change, and is read the same after another text.
func FuzzDecoder(f *testing.F) {
	all := seeds()
	for i, seed := range all {
		f.Add([]byte(seed), []byte(all[len(all)-1-i]))
	}
	f.Fuzz(func(t *testing.T, text, before []byte) {
		same := bytes.Clone(text)
		for name, read := range readers() {
			first := readFrom(&strictjson.Decoder{}, text, read)
			checkReading(t, name, text, first)
			used := &strictjson.Decoder{}
			readFrom(used, before, read)
			require.Equal(t, first, readFrom(used, text, read), name)
			require.Equal(t, same, text, name)
		}
	})
}

func checkReading(t *testing.T, name string, text []byte, r reading) {
	t.Helper()
	kept := fmt.Sprint(r.notes)
	if r.err == nil {
		require.True(t, json.Valid(text), "%s: accepted what is not JSON", name)
		if raw, ok := r.value.(jsontext.Value); ok {
			require.True(t, raw.IsValid(), "%s: a result that is not JSON", name)
			kept += string(raw)
		} else {
			kept += fmt.Sprintf("%+v", r.value)
		}
	} else {
		require.LessOrEqual(t, len(r.err.Pointer), 1<<10)
		kept += r.err.Pointer + r.err.Reason()
		require.LessOrEqual(t, len(r.err.Value), 64)
	}
	require.LessOrEqual(t, len(r.leftOut), 64)
	for _, left := range r.leftOut {
		kept += left.Pointer + left.Reason() + fmt.Sprint(left.Names)
		require.LessOrEqual(t, len(left.Value), 64)
	}
	require.LessOrEqual(t, len(r.notes), 64)
	for _, note := range r.notes {
		require.LessOrEqual(t, len(note.Pointer), 1<<10)
	}
	require.NotContains(t, kept, canary, name)
}

// A record that is read has the values of its text, as encoding/json reads them, and what is
// written of it is read as the same.
func FuzzRecord(f *testing.F) {
	for _, seed := range seeds() {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		list, d := readWhole("["+string(text)+","+string(text)+","+string(text)+"]", strictjson.Options{}, strictjson.Many(wholeRecord))
		if d.Err() != nil || len(d.LeftOut()) > 0 {
			return
		}
		got, d := readWholeRecord(string(text), strictjson.Options{})
		if d.Err() != nil {
			return // several values with commas between them
		}
		require.Equal(t, []whole{*got, *got, *got}, list, "in a list it is what it is alone")
		written, err := wholeRecord.Marshal(*got)
		require.NoError(t, err)
		var again whole
		require.NoError(t, wholeRecord.Unmarshal(written, &again))
		require.Equal(t, *got, again, "written as %s", written)
		var want map[string]any
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber()
		require.NoError(t, dec.Decode(&want))
		inner := want["part"].(map[string]any)
		assert.Equal(t, []any{want["id"], want["name"], want["open"], want["state"], want["partId"], inner["id"]},
			[]any{got.ID, got.Name, got.Open, string(got.State), got.PartID, got.Part.ID})
		assertAmount(t, want["price"], got.Price)
		assertAmount(t, inner["price"], got.Part.Price)
		assertAmount(t, want["count"], decimal.NewFromInt(int64(got.Count)))
	})
}

// assertAmount asserts that an amount is the one of a text or number.
func assertAmount(t *testing.T, text any, got decimal.Decimal) {
	t.Helper()
	want, err := decimal.NewFromString(fmt.Sprint(text))
	require.NoError(t, err)
	assert.True(t, want.Equal(got), "%v is read as %v", text, got)
}

// A Node has the values that encoding/json finds, each at its place.
func FuzzNode(f *testing.F) {
	for _, seed := range seeds() {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d := decoderOf(`{"result":`+string(text)+`}`, strictjson.Options{})
		d.BeginDocument()
		d.Name()
		node := strictjson.NodeOf(d, strictjson.Raw(d))
		d.End()
		d.EndDocument()
		if d.Err() != nil {
			return
		}
		var want any
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber()
		require.NoError(t, dec.Decode(&want))
		checkNode(t, node, want, "/result")
	})
}

func checkNode(t *testing.T, n strictjson.Node, want any, pointer string) {
	t.Helper()
	require.Equal(t, pointer[:min(len(pointer), 900)], n.Errorf("x").Pointer[:min(len(pointer), 900)])
	members, elements := slices.Collect(n.Members()), slices.Collect(n.Elements())
	switch want := want.(type) {
	case map[string]any:
		var names []string
		for _, m := range members {
			names = append(names, m.Name())
			checkNode(t, m, want[m.Name()], pointer+"/"+escapeToken(m.Name()))
		}
		require.ElementsMatch(t, slices.Collect(maps.Keys(want)), names)
	case []any:
		require.Len(t, elements, len(want))
		for i, e := range elements {
			checkNode(t, e, want[i], fmt.Sprintf("%s/%d", pointer, i))
		}
		require.Empty(t, members)
	default:
		require.Empty(t, members)
		require.Empty(t, elements)
		checkScalar(t, n, want)
	}
}

func escapeToken(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }

func checkScalar(t *testing.T, n strictjson.Node, want any) {
	t.Helper()
	text, isText := want.(string)
	require.Equal(t, text, n.Text())
	number, isNumber := want.(json.Number)
	amount, err := n.Amount()
	if err != nil {
		require.True(t, amount.IsZero())
		return
	}
	require.True(t, isText || isNumber)
	if isNumber {
		text = number.String()
	}
	assertAmount(t, text, amount)
}
