package sqlguard

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
)

func TestOrder_Token(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Order{
		"of the client's own merchant": {ID: "order-1", attempt: 1},
		"of another merchant":          {ID: "order-1", Merchant: "shop", attempt: 1<<63 - 1},
		"with quotes and spaces":       {ID: `a "b" \ ü`, Merchant: "the 'shop'", attempt: 2},
		"as long as one can be":        {ID: strings.Repeat("\u0301", 512), Merchant: strings.Repeat("\u0301", 128), attempt: 3},
		"of a row that was restored":   {ID: "order-1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.State = StateUnknown
			token := o.Token()
			if got, err := ParseToken(token); err != nil || got.ID != o.ID || got.Merchant != o.Merchant || got.attempt != o.attempt || got.State != StateUnknown {
				t.Errorf("%+v, %v", got, err)
			}
			if strings.HasPrefix(token, "-") || strings.Trim(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
				t.Errorf("%q", token)
			}
			for i := range len(token) {
				if got, err := ParseToken(token[:i]); err == nil {
					t.Errorf("the first %d bytes are a token: %+v", i, got)
				}
			}
		})
	}
	if token := (Order{ID: "order-1", State: StateCreated}).Token(); token != "" {
		t.Errorf("%q", token)
	}
}

func TestParseToken_refuses(t *testing.T) {
	t.Parallel()
	of := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for name, token := range map[string]string{
		"nothing":              "",
		"another text":         "A-17",
		"no order":             of(`1 1 "shop" ""`),
		"another version":      of(`2 1 "shop" "order-1"`),
		"more than one":        of(`1 1 "shop" "order-1" "order-2"`),
		"a number with a sign": of(`1 +1 "shop" "order-1"`),
		"too long":             of(fmt.Sprintf(`1 1 "" %q`, strings.Repeat("x", maxToken))),
	} {
		if o, err := ParseToken(token); err == nil {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// A token is that of one attempt: a finding about an earlier life of the order is refused.
func TestParseToken_namesTheAttempt(t *testing.T) {
	t.Parallel()
	inEach(t, func(t *testing.T, w testDB) {
		g := w.guard(t)
		g.once(t, order, gateway.OutcomeUnknown)
		seen, err := g.Order(t.Context(), "", order)
		check(t, err)
		earlier, err := ParseToken(seen.Token())
		check(t, err)
		execute(t, g.db, `DELETE FROM `+w.table)
		g.once(t, order, gateway.OutcomeUnknown)
		wantError(t, g.Resolve(t.Context(), earlier, Resolution{By: "anna", Margin: time.Nanosecond}), ErrTriedAgain)
		now, err := g.Order(t.Context(), "", order)
		check(t, err)
		latest, err := ParseToken(now.Token())
		check(t, err)
		check(t, g.Resolve(t.Context(), latest, Resolution{Exists: true, By: "anna"}))
		g.wantState(t, StateCreated, 1)
	})
}
