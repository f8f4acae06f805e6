package doc_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/doc"
)

// seeds are texts, good and bad.
func seeds() (all []string) {
	all = append(all,
		``, `null`, `[]`, `{}`, `"x"`, `1`, `[1,"2",{"amount":3}]`, `{"a":{"b":[{"c":null}]}}`, `{"a":`, `[[[[`,
		`{"a":1,"a":2}`, `{"\u0061":1,"a":2}`, `{}x`, "{\"a\":\"\xff\"}", `{"`+canary+`":1,"\u0043`+canary[1:]+`":nope}`,
		`{"a/b":{"c~d":[{"":1}]}}`, strings.Repeat(`{"a":`, 50)+strings.Repeat("[", 50), strings.Repeat(`{"v":1},`, 70),
	)
	for name, value := range map[string]string{
		"": ``, "price": `1e64`, "count": `1.0`, "open": `"true"`, "at": `"2024-01-02 03:04:05"`, "partId": `"p-2"`,
		"part": `{"id":"p-1"}`, "state": `"\u0044ONE"`, "name": `"` + canary + `"`,
	} {
		all = append(all, wholeWith(name, value), "["+wholeJSON()+","+wholeWith(name, value)+","+wholeWith(name, value)+"]")
	}
	return all
}

// Whatever a text is, it is read as encoding/json reads it or has an error, within bounds and without the key.
// A record has the values of its text.
func FuzzDoc(f *testing.F) {
	for _, seed := range seeds() {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		same := bytes.Clone(text)
		var d doc.Doc
		wrong := d.Parse(text, keys(), 1000)
		kept := ""
		for n := range d.Root().All() {
			require.True(t, n.Raw() == nil || n.Raw().IsValid())
			kept += n.Pointer() + n.Name() + n.Scalar()
			require.LessOrEqual(t, len(n.Pointer()), 1<<10)
		}
		if wrong == nil {
			require.True(t, json.Valid(text))
			records, skipped := wholeRecord.Many(d.Root())
			require.True(t, skipped == nil || len(records) == 0)
			for i, n := range slices.Collect(d.Root().Parts()) {
				alone, wrong := wholeRecord.One(n, "")
				if wrong == nil && i < len(records) && d.FirstSkipped() == nil {
					require.Equal(t, *alone, records[i])
				}
				if wrong == nil && n.Kind() == '{' {
					requireSame(t, n, alone)
				}
			}
		} else {
			kept += wrong.Pointer + wrong.Reason()
		}
		for _, note := range d.Notes() {
			kept += note.Pointer + note.Reason()
			require.LessOrEqual(t, len(note.Value), 64)
		}
		require.NotContains(t, kept, canary)
		require.LessOrEqual(t, len(d.Notes()), 2*doc.MaxSkipped)
		require.Equal(t, same, text)
	})
}

// requireSame requires the values that encoding/json finds in a text.
func requireSame(t *testing.T, n doc.Node, got *whole) {
	t.Helper()
	var want map[string]any
	text := json.NewDecoder(bytes.NewReader(n.JSON()))
	text.UseNumber()
	require.NoError(t, text.Decode(&want))
	require.Equal(t, []any{want["id"], want["name"], want["open"], want["state"], want["partId"]},
		[]any{got.ID, got.Name, got.Open, string(got.State), got.PartID})
	price, err := decimal.NewFromString(strings.TrimSpace(fmt.Sprint(want["price"])))
	require.NoError(t, err)
	require.True(t, price.Equal(got.Price))
}
