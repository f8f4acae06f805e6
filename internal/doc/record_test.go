package doc_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/doc"
)

// Every member goes where its tag says, in any order.
func TestRecord_One(t *testing.T) {
	t.Parallel()
	members := wholeMembers()
	for range members {
		for _, text := range []string{object(members, "", ""), "[ " + object(members, "", "") + " ]"} {
			got, wrong := wholeRecord.One(parsed(t, text), "w-1")
			require.Nil(t, wrong)
			assert.Equal(t, documentedWhole(), *got)
		}
		members = append(members[1:], members[0])
	}
	renamed := func(old, new string) string { return strings.Replace(wholeJSON(), old, new, 1) }
	for _, text := range []string{
		renamed(`"state":`, `"\u0073tate":`),
		renamed(`"state":`, `"STATE":"NEW","State":"OLD","state":`),
		`{"first":[{"price":7}],` + renamed(`"price":"2.5"`, `"inner":{},"price":"2.5"`)[1:],
	} {
		got, wrong := wholeRecord.One(parsed(t, text), "")
		require.Nil(t, wrong, text)
		assert.Equal(t, documentedWhole(), *got, text)
	}
	_, wrong := wholeRecord.One(parsed(t, wholeWith("id", `"8EE74576-0BCF-4BFA-9C0C-DE1A8CC8FA6B"`)),
		"8ee74576-0bcf-4bfa-9c0c-de1a8cc8fa6b")
	require.Nil(t, wrong, "an identifier of UUID form is the same in both cases")
	noTime, wrong := wholeRecord.One(parsed(t, wholeWith("at", "")), "")
	require.Nil(t, wrong)
	assert.Zero(t, noTime.At, "a time may be missing")
}

// A bad value of a record is an error at its place, alone and in a list.
func TestRecord_wrong(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, pointer, reason string }{
		{"an amount that is null", wholeWith("price", `null`), "/price", "is null, not an amount"},
		{"a record that is null", wholeWith("part", `null`), "/part", "is null, not an object"},
		{
			"a record that is an array of one", wholeWith("part", `[{"id":"p-1","price":1}]`), "/part",
			"is an array, not an object",
		},
		{"a value within a record", wholeWith("part", `{"id":"","price":1}`), "/part/id", "is empty"},
		{"a missing member within a record", wholeWith("part", `{"id":"p-1"}`), "/part/price", "is missing"},
		{"a name in upper case", strings.Replace(wholeJSON(), `"state"`, `"STATE"`, 1), "/state", "is missing"},
		{"the first of several missing members", `{"id":"w-1"}`, "/name", "is missing"},
		{"an empty object", `{}`, "/id", "is missing"},
		{"null", `null`, "", "is null, not an object"},
	}
	for _, m := range wholeMembers() {
		if m.name != "at" {
			tests = append(tests, struct{ name, text, pointer, reason string }{
				"no " + m.name, wholeWith(m.name, ""),
				"/" + m.name, "is missing",
			})
		}
	}
	for _, tt := range tests {
		_, wrong := wholeRecord.One(parsed(t, tt.text), "w-1")
		assertError(t, wrong, tt.pointer, tt.reason)
		listed := parsed(t, "["+wholeJSON()+","+tt.text+","+wholeJSON()+","+wholeJSON()+"]")
		got, wrong := wholeRecord.Many(listed)
		require.Nil(t, wrong)
		assert.Equal(t, slices.Repeat([]whole{documentedWhole()}, 3), got, tt.name)
		assertError(t, listed.Doc().FirstSkipped(), "/1"+tt.pointer, tt.reason)
		all := listed.Doc().Notes()
		assert.Equal(t, tt.text, string(all[len(all)-1].Record.Raw()), tt.name)
	}
}

// One takes an array of exactly one record, which has the identifier that was asked for.
func TestRecord_One_wrong(t *testing.T) {
	t.Parallel()
	const several = "has several records where one is expected"
	for _, tt := range []struct{ name, text, pointer, reason string }{
		{"two records", "[" + wholeJSON() + "," + wholeJSON() + "]", "", several},
		{"a record and another value", "[" + wholeJSON() + ",1]", "", several},
		{"no record", "[ ]", "", doc.ErrNoRecord.Error()},
		{"another record", wholeWith("id", `"w-2"`), "/id", doc.ErrMismatch.Error()},
		{"an identifier in another case", wholeWith("id", `"W-1"`), "/id", doc.ErrMismatch.Error()},
		{"the beginning of the identifier", wholeWith("id", `"w-"`), "/id", doc.ErrMismatch.Error()},
		{"an empty identifier", wholeWith("id", `""`), "/id", "is empty"},
		{"an identifier that is a number", wholeWith("id", `1`), "/id", "is a number, not text"},
		{"a key as the identifier", wholeWith("id", `"`+canary+`"`), "/id", doc.ErrMismatch.Error()},
	} {
		got, wrong := wholeRecord.One(parsed(t, tt.text), "w-1")
		assert.Nil(t, got, tt.name)
		assertError(t, wrong, tt.pointer, tt.reason)
	}
}

// Many takes an array, and OneOrMany one record as well.
func TestRecord_Many(t *testing.T) {
	t.Parallel()
	r := doc.RecordOf[box[int]]()
	bad := "[" + strings.Repeat(`{"v":1},`, 17) + `{"v":"x"}` + strings.Repeat(`,{"v":1}`, 82) + "]"
	for text, want := range map[string][]box[int]{
		`[{"v":3},{"v":1}]`: {{3}, {1}}, `[ ]`: {},
		bad: slices.Repeat([]box[int]{{1}}, 99),
	} {
		for _, read := range []func(doc.Node) ([]box[int], *doc.Error){r.Many, r.OneOrMany} {
			got, wrong := read(parsed(t, text))
			require.Nil(t, wrong)
			assert.Equal(t, want, got)
		}
	}
	one, wrong := r.OneOrMany(parsed(t, `{"v":1}`))
	require.Nil(t, wrong)
	assert.Equal(t, []box[int]{{1}}, one)
	_, wrong = r.OneOrMany(parsed(t, `null`))
	assertError(t, wrong, "", "is null, not an object")
	for text, reason := range map[string]string{`null`: "is null, not an array", `{"v":1}`: "is an object, not an array"} {
		_, wrong = r.Many(parsed(t, text))
		assertError(t, wrong, "", reason)
	}
	_, wrong = r.Many(parsed(t, `[{"v":"x"},null,{}]`))
	assertError(t, wrong, "/0/v", "is not an integer in range")
}

// A lenient is a record with members that it can do without.
type lenient struct {
	ID      string          `json:"id" check:"id"`
	Fee     decimal.Decimal `json:"fee" check:"needless,off open"`
	Count   int             `json:"count" check:"needless"`
	Open    bool            `json:"open" check:"needless"`
	PartID  string          `json:"partId" check:"needless,equals part.id"`
	At      time.Time       `json:"at,omitzero"`
	Part    lenientPart     `json:"part"`
	Missing []string        `json:"missing,omitzero"`
}

type lenientPart struct {
	ID    string          `json:"id" check:"needless,nonempty"`
	Price decimal.Decimal `json:"price"`
	Name  string          `json:"name" check:"needless"`
}

// A record lists the needless members that it lacks, alone and in a list, where their struct may recur.
func TestRecord_missing(t *testing.T) {
	t.Parallel()
	r := doc.RecordOf[lenient]()
	const good = `{"id":"w-1","fee":"1.5","count":2,"open":true,"partId":"p","at":"2024-01-02T03:04:05Z",` +
		`"part":{"id":"p","price":"1","name":"n"}}`
	for _, tt := range []struct {
		name, old, new string
		missing        []string
		notes          []string
	}{
		{"nothing", "", "", nil, nil},
		{"a null", `"count":2`, `"count":null`, []string{"count"}, []string{"lacking /1/count: is null, not a number"}},
		{"a missing one", `"count":2,`, ``, []string{"count"}, []string{"lacking /1/count: is missing"}},
		{
			"an amount that is none", `"1.5"`, `"Infinity"`,
			[]string{"fee"},
			[]string{`lacking /1/fee: "Infinity" is not a decimal number`},
		},
		{"an empty amount", `"1.5"`, `""`, []string{"fee"}, []string{`lacking /1/fee: "" is empty`}},
		{
			"a boolean that is none", `true`, `"yes"`,
			[]string{"open"},
			[]string{`lacking /1/open: "yes" is text, not a boolean`},
		},
		{"an empty reference", `"partId":"p"`, `"partId":""`, []string{"partId"}, []string{`lacking /1/partId: "" is empty`}},
		{
			"a reference that is null", `"partId":"p"`, `"partId":null`,
			[]string{"partId"},
			[]string{"lacking /1/partId: is null, not text"},
		},
		{
			"what it refers to", `"id":"p"`, `"id":null`,
			[]string{"part.id"},
			[]string{"lacking /1/part/id: is null, not text"},
		},
		{
			"within a record", `"name":"n"`, `"name":[]`,
			[]string{"part.name"},
			[]string{"lacking /1/part/name: is an array, not text"},
		},
		{"missing within a record", `,"name":"n"`, ``, []string{"part.name"}, []string{"lacking /1/part/name: is missing"}},
		{
			"two", `2,"open":true,"partId":"p","at":"2024-01-02T03:04:05Z"`, `null,"open":true,"partId":"p"`,
			[]string{"at", "count"},
			[]string{"lacking /1/count: is null, not a number"},
		},
		{"a time that may be missing", `"at":"2024-01-02T03:04:05Z",`, ``, []string{"at"}, nil},
		{
			"a time that cannot be read", `"2024-01-02T03:04:05Z"`, `7`,
			[]string{"at"},
			[]string{"lacking /1/at: 7 is not a time"},
		},
		{"an own list", `"count":2`, `"count":2,"missing":["id"]`, nil, []string{"unknown field /1/missing"}},
	} {
		text := strings.Replace(good, tt.old, tt.new, 1)
		alone, wrong := r.One(parsed(t, text), "w-1")
		require.Nil(t, wrong, tt.name)
		assert.Equal(t, tt.missing, alone.Missing, tt.name)
		assert.Equal(t, !slices.Contains(tt.missing, "fee") && !slices.Contains(tt.missing, "open"), alone.Open, tt.name)
		listed := parsed(t, "["+strings.Join([]string{good, text, text, text}, ",")+"]")
		got, wrong := r.Many(listed)
		require.Nil(t, wrong, tt.name)
		require.Len(t, got, 4, tt.name)
		assert.Nil(t, got[0].Missing)
		assert.Equal(t, slices.Repeat([]lenient{*alone}, 3), got[1:], tt.name)
		assert.Equal(t, tt.notes, notes(listed.Doc()), tt.name)

		stored, err := json.Marshal(got)
		require.NoError(t, err)
		again, err := r.UnmarshalAll(stored)
		require.NoError(t, err, tt.name)
		rewritten, err := json.Marshal(again)
		require.NoError(t, err)
		assert.Equal(t, string(stored), string(rewritten), tt.name)
	}
	all, wrong := r.One(parsed(t, `{"part":{"price":1},"id":"w-1"}`), "")
	require.Nil(t, wrong)
	assert.Equal(t, []string{"at", "count", "fee", "open", "part.id", "part.name", "partId"}, all.Missing)
	for text, reason := range map[string]string{
		strings.Replace(good, `"count":2`, `"count":null`, 1):               "/0/count is null, not a number",
		strings.Replace(good, `"count":2,`, ``, 1):                          "/0/count is missing",
		strings.Replace(good, `"1.5"`, `""`, 1):                             "/0/fee is empty",
		strings.Replace(good, `"name":"n"`, `"name":null`, 1):               "/0/part/name is null, not text",
		strings.Replace(good, `"count":2`, `"count":2,"missing":7`, 1):      "/0/missing is a number, not an array",
		strings.Replace(good, `"count":2`, `"count":2,"missing":[null]`, 1): "/0/missing/0 is null, not text",
		strings.Replace(good, `"2024-01-02T03:04:05Z"`, `"soon"`, 1):        "/0/at is not a time",
	} {
		_, err := r.UnmarshalAll([]byte("[" + text + "]"))
		assert.EqualError(t, err, reason, "a stored record lacks nothing")
	}
}

// A text of records is read strictly: no record is skipped.
func TestRecord_UnmarshalAll(t *testing.T) {
	t.Parallel()
	r := doc.RecordOf[box[int]]()
	got, err := r.UnmarshalAll([]byte(`[{"v":1,"x":2},{"v":2}]`))
	require.NoError(t, err)
	assert.Equal(t, []box[int]{{1}, {2}}, got)
	for text, reason := range map[string]string{
		`[{"v":1},{"v":null}]`: "/1/v is null, not a number",
		`[{"v":1},{}]`:         "/1/v is missing",
		`[{}]`:                 "/0/v is missing",
		`{"v":1}`:              "it is an object, not an array",
		`[{"v":1,"v":2}]`:      "/0/v duplicate object member name",
		`[{"v":1}`:             "it unexpected EOF",
	} {
		_, err := r.UnmarshalAll([]byte(text))
		assert.EqualError(t, err, reason, text)
	}
}

// A record of a list is equal to the record alone, wherever it is in the list.
func TestRecord_Many_alike(t *testing.T) {
	t.Parallel()
	const n = 400
	var all []string
	for i := range n {
		id := fmt.Sprintf("p-%d", i%300)
		all = append(all, object([]member{
			{"id", fmt.Sprintf(`"w-%d"`, i)},
			{"name", `"` + strings.Repeat("n", i%7) + `"`},
			{"price", fmt.Sprintf(`"%d.5"`, i%270)},
			{"count", fmt.Sprint(i)},
			{"open", fmt.Sprint(i%2 == 0)},
			{"state", `"NEW"`},
			{"at", fmt.Sprintf(`"2024-01-02T03:%02d:%02dZ"`, i/20, i%60)},
			{"partId", fmt.Sprintf("%q", id)},
			{"part", fmt.Sprintf(`{"id":%q,"price":%d,"at":"2023-01-02"}`, id, i%11)},
		}, "", ""))
	}
	got, wrong := wholeRecord.Many(parsed(t, "["+strings.Join(all, ",")+"]"))
	require.Nil(t, wrong)
	require.Len(t, got, n)
	assert.Equal(t, n, cap(got), "a list is stored once")
	for i, record := range all {
		alone, wrong := wholeRecord.One(parsed(t, record), "")
		require.Nil(t, wrong)
		require.Equal(t, *alone, got[i])
	}
}

// Records of a list share equal values; a change of one is no change of another.
func TestRecord_Many_shared(t *testing.T) {
	t.Parallel()
	got, wrong := wholeRecord.Many(parsed(t, "["+wholeJSON()+","+wholeJSON()+","+wholeJSON()+"]"))
	require.Nil(t, wrong)
	got[1].Part.ID, got[1].Part.At = "changed", time.Time{}
	got[1].Price.Coefficient().SetInt64(7)
	require.NoError(t, got[1].Part.Price.Scan("99.99"))
	assert.Equal(t, documentedWhole(), got[0])
	assert.Equal(t, documentedWhole(), got[2])
}

// A type that is not a record is noticed when its Record is made.
func TestRecordOf_panics(t *testing.T) {
	t.Parallel()
	assert.Panics(t, func() { doc.RecordOf[struct{ A string }]() }, "no tag")
	assert.Panics(t, func() { doc.RecordOf[box[struct{ A any }]]() }, "within")
	assert.Panics(t, func() { doc.RecordOf[box[float64]]() }, "another type")
	assert.Panics(t, func() {
		doc.RecordOf[struct {
			A string `json:"a,omitempty"`
		}]()
	}, "another option")
	assert.Panics(t, func() {
		doc.RecordOf[struct {
			A string `json:"a" check:"equals b"`
		}]()
	}, "a check of a member that is not there")
}

// A key that a service repeats is in no record and in no error.
func TestRecord_key(t *testing.T) {
	t.Parallel()
	good := wholeWith("part", `{"id":"a `+canary+`","price":1}`)
	bad := wholeWith("part", `{"`+canary+`":1,"id":"`+canary+`","price":"`+canary+`"}`)
	listed := parsed(t, "["+good+","+good+","+good+","+bad+"]")
	got, wrong := wholeRecord.Many(listed)
	require.Nil(t, wrong)
	for _, w := range got {
		assert.Equal(t, "a [REDACTED]", w.Part.ID)
	}
	assert.Equal(t, []string{
		"unexpected /0/part/price", "mismatch /0/partId", "unknown field /3/part/[REDACTED]",
		`skipped /3/part/price: "[REDACTED]" is not a decimal number`,
	}, notes(listed.Doc()))
}
