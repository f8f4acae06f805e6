package strictjson_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cryptogw/gateway/internal/strictjson"
)

var errMore = errors.New("tells of more")

// atResult is a decoder that has read a text up to its result.
func atResult(t testing.TB, text string) *strictjson.Decoder {
	t.Helper()
	d := decoderOf(text, strictjson.Options{Redactor: redactor()})
	d.BeginDocument()
	for string(d.Name()) != "result" && d.Err() == nil {
		d.Skip()
	}
	strictjson.Raw(d)
	require.Nil(t, d.Err())
	return d
}

// failPage returns the error of a text with a list in its result.
func failPage(t testing.TB, text string, list jsontext.Pointer, came int) *strictjson.Error {
	t.Helper()
	d := atResult(t, text)
	d.FailPage(list, came, errMore)
	return d.Err()
}

// Of what is beside a list of two records, what tells of more of them.
func TestDecoder_FailPage(t *testing.T) {
	t.Parallel()
	for meta, want := range map[string]string{
		`{"total":3}`: "/meta/total", `{"count":"3"}`: "/meta/count", `{"total":2,"count":0}`: "", `{"total":"3.5"}`: "", `{"total":null}`: "",
		`{"page":2}`: "/meta/page", `{"pages":2}`: "/meta/pages", `{"page":1,"pages":1}`: "",
		`{"currentPage":1,"lastPage":3}`: "/meta/lastPage", `{"last_page":3}`: "/meta/last_page", `{"current_page":2}`: "/meta/current_page", `{"lastPage":1}`: "",
		`{"limit":2}`: "/meta/limit", `{"limit":20}`: "", `{"offset":1}`: "/meta/offset", `{"offset":0}`: "",
		`{"limit":2,"total":2}`: "", `{"total_count":"2","x":{"per_page":2}}`: "", `{"limit":2,"count":1}`: "/meta/limit", `{"limit":2,"total":2,"page":2}`: "/meta/page",
		`{"rateLimit":{"limit":2}}`: "", `{"rate_limit":{"a":{"limit":2,"count":5}}}`: "", `{"rateLimits":[],"limit":2}`: "/meta/limit",
		`{"next":"x"}`: "/meta/next", `{"hasMore":true}`: "/meta/hasMore", `{"has_more":1}`: "/meta/has_more", `{"next":null,"cursor":"","hasMore":false,"nextPage":0}`: "",
		`{"next_cursor":"x"}`: "/meta/next_cursor", `{"nextCursor":"x"}`: "/meta/nextCursor", `{"nextPage":2}`: "/meta/nextPage", `{"next_page":"/x"}`: "/meta/next_page",
		`{"next":{"page":2}}`: "/meta/next/page", `{"next":[]}`: "", `{"NEXT":"1"}`: "", `{"n\u0065xt":"x"}`: "/meta/next",
		`{"a":{"b":{"total":3}}}`: "/meta/a/b/total", `{"a":[{"total":3}],"b":3}`: "", `[{"total":3}]`: "", `3`: "", `{}`: "",
	} {
		for _, text := range []string{`{"meta":` + meta + `,"result":[1,2]}`, `{"result":[1,2],"meta":` + meta + `}`} {
			switch wrong := failPage(t, text, "", 2); {
			case want == "":
				assert.Nil(t, wrong, text)
			case assert.NotNil(t, wrong, text):
				assert.Equal(t, want, wrong.Pointer, text)
				assert.Equal(t, errMore, wrong.Err, text)
			}
		}
	}
	assert.Nil(t, failPage(t, `{"result":[],"meta":{"limit":0}}`, "", 0), "a limit of none is no page")
	assert.Nil(t, failPage(t, `{"result":[1],"meta":{"total":3},`, "", 1), "that the text ends is told first")
}

// What is in the list tells nothing of it, and what is on the way to it does.
func TestDecoder_FailPage_listWithin(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"result":[{"total":9},{"a":{"list":{"total":9}},"total":1}],"meta":{}}`:             "",
		`{"result":[{"total":9},{"a":{"list":{"total":9}},"total":2}],"meta":{}}`:             "/result/1/total",
		`{"result":[{"total":9},{"a":{"list":[],"count":2}}],"meta":{}}`:                      "/result/1/a/count",
		`{"result":[{"total":9},{"a":{"b":{"hasMore":true},"list":[]}}],"meta":{}}`:           "/result/1/a/b/hasMore",
		`{"result":[{"total":9},{"a":1}],"list":{"total":9}}`:                                 "/list/total",
		`{"result":[{"total":9},{"a":{"list":[{"total":9}]}}],"meta":{"a":[{"total":9}]}}`:    "",
		`{"result":[{"total":9},{"a":{"list":[{"total":9}]}}],"total":{"a":{"ABC":"total"}}}`: "",
	} {
		wrong := failPage(t, text, "/1/a/list", 1)
		assert.Equal(t, want == "", wrong == nil, text)
		if wrong != nil {
			assert.Equal(t, want, wrong.Pointer, text)
		}
	}
}

// What is beside a list allocates at most four times its text, however much it is. This test is not parallel,
// because it measures.
func TestDecoder_FailPage_cost(t *testing.T) {
	for _, member := range []string{`{"y":1,"z":[1,2]}`, `{"total":9,"limit":1}`, `{"rate":{"y":{}}}`, `"next"`} {
		members := ""
		for i := range 5000 {
			members += `"x` + strconv.Itoa(i) + `":` + member + ","
		}
		d := atResult(t, `{`+members+`"result":[1]}`)
		assert.Less(t, allocated(func() { d.FailPage("", 1, errMore) }), 4*uint64(len(members)), member)
	}
	const deep = 5000
	d := atResult(t, `{`+strings.Repeat(`"limit":{`, deep)+`"limit":1`+strings.Repeat("}", deep)+`,"result":[1]}`)
	assert.Less(t, allocated(func() { d.FailPage("", 1, errMore) }), uint64(1<<20))
}
