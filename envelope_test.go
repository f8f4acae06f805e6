package gateway_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// A response that is cut anywhere is never a success, whatever was read of it.
func TestEnvelope_truncated(t *testing.T) {
	t.Parallel()
	forEach(t, "cut at every byte", func(t *testing.T, s subject) {
		body := s.body()
		for n := range len(body) {
			result, err := s.call(t.Context(), cannedClient(t, s.status, body[:n]))
			require.Error(t, err, "cut after %d bytes", n)
			require.True(t, isZero(result), "cut after %d bytes", n)
			wrong := decodeErrorOf(t, s, err)
			require.Equal(t, body[:n], string(wrong.Body))
		}
		_, err := s.call(t.Context(), cannedClient(t, s.status, body))
		require.NoError(t, err)
	})
}

// I-38, I-43
func TestEnvelope_none(t *testing.T) {
	t.Parallel()
	const success = `"message":"Operation was successful."`
	for _, tt := range []struct{ name, body, pointer, reason string }{
		{"no body", "", "", "the body is empty"},
		{"a byte-order mark and spaces", "\ufeff \r\n\t ", "", "the body is empty"},
		{"null", "null", "", "is null, not an object"},
		{"an array of an envelope", `[{"result":[]}]`, "", "is an array, not an object"},
		{"an empty object", "{}", "/result", "is missing"},
		{"an envelope without a result", "{" + success + `,"meta":{}}`, "/result", "is missing"},
		{"a result by another name", "{" + success + `,"Result":[],"data":[]}`, "/result", "is missing"},
		{"a page", "<!DOCTYPE html><html><body>Just a moment…</body></html>", "", "invalid character"},
		{"a second byte-order mark", "\ufeff\ufeff{}", "", "invalid character"},
	} {
		forEach(t, tt.name, func(t *testing.T, s subject) {
			assertNotUnderstood(t, s, tt.body, tt.pointer, tt.reason)
		})
	}
}

// Whatever is around a good result must be whole and well formed, each member of the
// envelope and those that it does not have.
// I-8
func TestEnvelope_broken(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)
	for _, tt := range []struct{ name, before, after, pointer, reason string }{
		{"a brace at the end", "", "}}", "", "there is more after the end"},
		{"a second document", "", "}\n{}", "", "there is more after the end"},
		{"a result twice", "", `,"result":[]}`, "/result", "duplicate"},
		{"a result twice, first as null", `"result":null,`, "}", "/result", ""},
		{"a result twice, once in escapes", "", `,"\u0072esult":[]}`, "/result", "duplicate"},
		{"a message twice", "", `,"message":"a","message":"b"}`, "/message", "duplicate"},
		{"an unknown name twice", "", `,"x":1,"x":2}`, "/x", "duplicate"},
		{"a name twice in meta", "", `,"meta":{"a":{"b":1,"b":2}}}`, "/meta/a/b", "duplicate"},
		{"a name twice in an unknown member", "", `,"x":[{"b":1,"b":2}]}`, "/x/0/b", "duplicate"},
		{"meta of depth 10,001", "", `,"meta":` + deep + "}", "/meta", "depth"},
		{"an unknown member of depth 10,001", "", `,"x":` + deep + "}", "/x", "depth"},
		{"a message of depth 10,001", `"message":` + deep + ",", "}", "/message", "depth"},
		{"a broken byte in the message", "\"message\":\"a\xff\",", "}", "/message", "UTF-8"},
		{"a lone surrogate in the message", `"message":"a\ud800",`, "}", "/message", "surrogate"},
		{"a broken byte in meta", "", ",\"meta\":{\"a\":\"\xff\"}}", "/meta/a", "UTF-8"},
		{"a broken byte in a name", "", ",\"\xff\":1}", "", "UTF-8"},
		{"a broken byte in an unknown member", "", ",\"x\":\"\xff\"}", "/x", "UTF-8"},
		{"a comma at the end", "", ",}", "", "invalid character"},
	} {
		forEach(t, tt.name, func(t *testing.T, s subject) {
			assertBroken(t, s, "{"+tt.before+`"result":`+s.result+tt.after, tt.pointer, tt.reason)
		})
	}
}

// assertBroken is assertNotUnderstood for an error of syntax, whose place is that of
// the parser: at pointer or below it.
func assertBroken(t testing.TB, s subject, body, pointer, reason string) {
	t.Helper()
	result, err := s.call(t.Context(), cannedClient(t, s.status, body))
	assertInvariants(t, result, err)
	require.Error(t, err)
	wrong := decodeErrorOf(t, s, err)
	assert.True(t, strings.HasPrefix(wrong.Pointer, pointer), "%.100s is not below %s", wrong.Pointer, pointer)
	assert.ErrorContains(t, wrong.Err, reason)
	assert.LessOrEqual(t, len(err.Error()), 4<<10, "the text is bounded")
	assert.Equal(t, strings.ToValidUTF8(body[:min(len(body), 8<<10)], "?"), strings.ToValidUTF8(string(wrong.Body), "?"))
	assert.Equal(t, outcomeWithoutProof(s), gateway.OutcomeOf(err))
}

// Nothing in the result itself may be malformed either, whatever its shape.
// I-8
func TestEnvelope_brokenResult(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, result string }{
		{"null", "null"},
		{"a depth of 1,000,000 arrays", strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000)},
		{"a depth of 1,000,000 objects", strings.Repeat(`{"a":`, 1_000_000) + "1" + strings.Repeat("}", 1_000_000)},
		{"a broken byte", "\"\xff\""},
		{"a broken byte in a member", "{\"a\":\"\xff\"}"},
		{"a name twice", `{"a":1,"a":1}`},
		{"a name twice in a record", `[{"a":1,"a":1}]`},
		{"nothing", ""},
		{"a word", "undefined"},
	} {
		forEach(t, tt.name, func(t *testing.T, s subject) {
			assertBroken(t, s, enveloped(tt.result), "/result", "")
		})
	}
}

// What the envelope may be.
// I-44
func TestEnvelope_lenient(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, before, after, message, meta string
		page                               bool // a balance may be one page of several
	}{
		{"a byte-order mark", "\ufeff{", "}", "", "", false},
		{"a byte-order mark and spaces", "\ufeff\r\n {", "}\r\n ", "", "", false},
		{"unknown members", `{"x":1,"y":{"z":[null]},`, `,"w":null}`, "", "", false}, // I-6
		{"members that differ in case", `{"MESSAGE":1,"Result":null,`, `,"META":[]}`, "", "", false},
		{"meta is an array", `{"meta":[],`, "}", "", "[]", false},
		{"meta is null", `{"meta":null,`, "}", "", "null", false},
		{"meta is missing", `{"message":"Operation was successful.",`, "}", "Operation was successful.", "", false},
		{"meta is empty", `{"meta":{},`, "}", "", "{}", false}, // I-42
		{"meta is full", `{"meta":{"page":1,"more": {"a":[]}},`, "}", "", `{"page":1,"more": {"a":[]}}`, true},
		{"meta has 64 KiB", `{"meta":"` + strings.Repeat("x", 64<<10-2) + `",`, "}", "", `"` + strings.Repeat("x", 64<<10-2) + `"`, true},
		{"meta has more", `{"meta":"` + strings.Repeat("x", 64<<10-1) + `",`, "}", "", "", true},
		{"the message is a number", `{"message":1,`, "}", "", "", false},
		{"the message is an object", `{"message":{"en":"x"},`, "}", "", "", false},
		{"the message is null", `{"message":null,`, "}", "", "", false},
		// I-39
		{"the message has 1 KiB", `{"message":"` + strings.Repeat("x", 1<<10) + `",`, "}", strings.Repeat("x", 1<<10), "", false},
		{"the message has 1 MB", `{"message":"` + strings.Repeat("é", 1<<19) + `",`, "}", strings.Repeat("é", 1<<9), "", false},
		{"the message is truncated between characters", `{"message":"x` + strings.Repeat("é", 1<<10) + `",`, "}", "x" + strings.Repeat("é", 1<<9-1), "", false},
		{"the message comes last", "{", `,"message":"a\u0062c"}`, "abc", "", false},
		{"names in escapes", `{"\u006dessage":"x","\u006deta":{"a":1},`, "}", "x", `{"a":1}`, true},
		{"spaces everywhere", "\t{\r\n", "\n}\n", "", "", false},
	} {
		forEach(t, tt.name, func(t *testing.T, s subject) {
			body := tt.before + `"result" : ` + s.result + tt.after
			var response gateway.Response
			result, err := s.call(t.Context(), cannedClient(t, s.status, body), gateway.WithResponse(&response))
			assertInvariants(t, result, err)
			isPage := s.name == "Balance" && tt.page
			if isPage || s.write && tt.message != "Operation was successful." {
				decodeErrorOf(t, s, err)
			} else {
				require.NoError(t, err)
			}
			assert.Equal(t, tt.message, response.Message)
			assert.Equal(t, tt.meta, string(response.Meta))
			assert.Equal(t, s.result, string(response.Result))
		})
	}
}

// A result of which not all is there is nothing.
func TestEnvelope_resultOfAnError(t *testing.T) {
	t.Parallel()
	const kept = 32 << 10
	padded := func(before, result int) string {
		return `{"x":"` + strings.Repeat("x", before-len(`{"x":"","result":`)) + `","result":"` + strings.Repeat("r", result-2) + `"}`
	}
	for _, tt := range []struct{ name, body, want string }{
		{"a result", `{"result": [1] }`, "[1]"},
		{"spaces around it", "{\"result\" :\r\n\t{\"a\": 1} , \"x\":1}", `{"a": 1}`},
		{"a number to the last byte", `{"result":12}`, "12"},
		{"an envelope that is cut after it", `{"result":[1]`, "[1]"},
		{"a result that is cut", `{"result":[1,`, ""},
		{"a result that is broken", `{"result":[1,}],"meta":{}}`, ""},
		{"a result without a byte", `{"result":`, ""},
		{"a result without a value", `{"result":}`, ""},
		{"no result", `{"message":"m"}`, ""},
		{"a page", `<html>"result":[1]`, ""},
		{"beyond what is kept", padded(kept+1<<10, 8), ""},
		{"partly beyond what is kept", padded(kept-8, 2<<10), ""},
		{"within what is kept", padded(kept-16, 8), `"rrrrrr"`},
	} {
		forEach(t, tt.name, func(t *testing.T, s subject) {
			var response gateway.Response
			_, err := s.call(t.Context(), cannedClient(t, 404, tt.body), gateway.WithResponse(&response))
			if unknown, ok := errors.AsType[*gateway.OutcomeUnknownError](err); ok {
				err = unknown.Cause
			}
			require.IsType(t, (*gateway.APIError)(nil), err)
			assert.Equal(t, tt.want, string(response.Result))
			if tt.want == "" {
				assert.Nil(t, response.Result)
			}
		})
	}
}

// The message is truncated after the key is removed, so that no part of it is left.
func TestEnvelope_key(t *testing.T) {
	t.Parallel()
	for before := 1<<10 - len(canary) - 2; before <= 1<<10+2; before++ {
		message := strings.Repeat("x", before) + canary + "y"
		var response gateway.Response
		_, err := cannedClient(t, 404, `{"message":"`+message+`","result":[],"meta":{"`+canary+`":"`+canary+`"}}`).
			Balance(t.Context(), gateway.BalanceQuery{}, gateway.WithResponse(&response))
		var refusal *gateway.APIError
		require.ErrorAs(t, err, &refusal)
		for _, text := range []string{refusal.Message, response.Message} {
			require.LessOrEqual(t, len(text), 1<<10)
			require.True(t, utf8.ValidString(text))
			require.NotContains(t, text, canary[:2], "%d bytes before the key", before)
		}
		assert.JSONEq(t, `{"[REDACTED]":"[REDACTED]"}`, string(response.Meta))
		assertNoKey(t, err)
	}
}

// An error envelope that comes with a 2xx is an APIError.
// I-154, I-155, I-157
func TestEnvelope_refusedWithSuccess(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"CoinNetwork", "CoinNetworkBySymbol", "Withdrawal"} {
		s := subjectNamed(name)
		t.Run("an empty array where a record is expected, whatever the message, "+name, func(t *testing.T) {
			t.Parallel()
			got, err := s.call(t.Context(), cannedClient(t, s.status, enveloped("[]")))
			assertRefusedWithSuccess(t, s, got, err, "Operation was successful.")
		})
	}
	forEach(t, "an empty array with another message", func(t *testing.T, s subject) {
		got, err := s.call(t.Context(), cannedClient(t, s.status, refused("Coin is not supported")))
		if s.write {
			var unknown *gateway.OutcomeUnknownError
			require.ErrorAs(t, err, &unknown)
			assert.Equal(t, s.status, unknown.StatusCode)
			err = unknown.Cause
		}
		assertRefusedWithSuccess(t, s, got, err, "Coin is not supported")
	})
	t.Run("a meta that is larger than what is kept of a body is whole", func(t *testing.T) {
		t.Parallel()
		meta := `{"why":"` + strings.Repeat("x", 9<<10) + `"}`
		got, err := cannedClient(t, 200, `{"message":"no","result":[],"meta":`+meta+`}`).Withdrawal(t.Context(), requestID)
		assertInvariants(t, got, err)
		var refusal *gateway.APIError
		require.ErrorAs(t, err, &refusal)
		assert.Equal(t, meta, string(refusal.Meta))
	})
}

func assertRefusedWithSuccess(t *testing.T, s subject, got any, err error, message string) {
	t.Helper()
	assertInvariants(t, got, err)
	var refusal *gateway.APIError
	require.ErrorAs(t, err, &refusal)
	assert.Equal(t, s.op, refusal.Operation)
	assert.Equal(t, s.status, refusal.StatusCode)
	assert.Equal(t, message, refusal.Message)
	assert.Equal(t, "{}", string(refusal.Meta))
	assert.NotEmpty(t, refusal.Body)
}
