package strictjson_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway/internal/strictjson"
)

// Of a value beside a list of two records, what tells of more of them.
func TestNode_More(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"total":3}`: "/result/total", `{"count":"3"}`: "/result/count", `{"total":2,"count":0}`: "", `{"total":"3.5"}`: "", `{"total":null}`: "",
		`{"page":2}`: "/result/page", `{"pages":2}`: "/result/pages", `{"page":1,"pages":1}`: "",
		`{"limit":2}`: "/result/limit", `{"limit":20}`: "", `{"offset":1}`: "/result/offset", `{"offset":0}`: "",
		`{"next":"x"}`: "/result/next", `{"hasMore":true}`: "/result/hasMore", `{"next":null,"cursor":"","hasMore":false}`: "",
		`{"a":{"b":{"total":3}}}`: "/result/a/b/total", `{"a":[{"total":3}],"b":3}`: "", `[{"total":3}]`: "", `3`: "", `{}`: "",
	} {
		more := nodeOf(t, text).More(2)
		assert.Equal(t, want == "", more.IsZero(), text)
		if !more.IsZero() {
			assert.Equal(t, want, more.Errorf("x").Pointer, text)
		}
	}
	assert.True(t, strictjson.Node{}.More(0).IsZero())
	assert.True(t, nodeOf(t, `{"limit":0}`).More(0).IsZero(), "a limit of none is no page")
}
