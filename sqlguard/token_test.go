package sqlguard

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/cryptogw/gateway"
)

func TestOrder_Token(t *testing.T) {
	for name, o := range map[string]Order{
		"of the client's own merchant": {ID: "order-1", Attempts: 1, State: StateUnknown},
		"of another merchant":          {ID: "order-1", Merchant: "shop", Attempts: 12, State: StateUnknown},
		"with quotes and spaces":       {ID: `a "b" \ ü`, Merchant: "the 'shop'", Attempts: 2, State: StateUnknown},
		"with bytes that are no text":  {ID: "a\xff\n\x00", Attempts: 2, State: StateUnknown},
		"as long as one can be":        {ID: strings.Repeat("\u0301", 512), Merchant: strings.Repeat("\u0301", 128), Attempts: 1 << 30, State: StateUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			token := o.Token()
			got, err := ParseToken(token)
			if err != nil || got.ID != o.ID || got.Merchant != o.Merchant || got.Attempts != o.Attempts || got.State != StateUnknown {
				t.Errorf("%+v, %v, want %+v", got, err, o)
			}
			if token[0] == '-' || strings.Trim(token, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
				t.Errorf("%q is not one word in a shell", token)
			}
		})
	}
}

func TestParseToken_refuses(t *testing.T) {
	whole := Order{ID: "order-1", Merchant: "shop", Attempts: 1, State: StateUnknown}.Token()
	encoded := base64.RawURLEncoding.EncodeToString
	for name, token := range map[string]string{
		"nothing":                      "",
		"the name of an order":         "order-1",
		"a token without its last":     whole[:len(whole)-1],
		"a token without its first":    whole[1:],
		"a token with a space":         whole + " ",
		"a token with more":            whole + encoded([]byte(` "x"`)),
		"padding":                      whole + "=",
		"another version":              encoded([]byte(`2 1 "shop" "order-1"`)),
		"no attempts":                  encoded([]byte(`1 0 "shop" "order-1"`)),
		"another spelling of a number": encoded([]byte(`1 01 "shop" "order-1"`)),
		"no order":                     encoded([]byte(`1 1 "shop" ""`)),
		"a megabyte":                   strings.Repeat("A", 1<<20),
		"an order that is not unknown": Order{ID: "order-1", Attempts: 1, State: StateInFlight}.Token(),
	} {
		t.Run(name, func(t *testing.T) {
			o, err := ParseToken(token)
			var argument *gateway.ArgumentError
			if !errors.As(err, &argument) || o.ID != "" || !strings.Contains(err.Error(), "copy it again") {
				t.Errorf("%+v, %v", o, err)
			}
		})
	}
}

// An order that was listed and has been sent again since is not resolved by its token.
func TestParseToken_resolves(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		g := w.guard(t)
		g.once(t, order, gateway.OutcomeUnknown)
		listed, err := g.Order(t.Context(), "", order)
		check(t, err)
		first, err := ParseToken(listed.Token())
		check(t, err)
		check(t, g.resubmits(t.Context(), order))
		check(t, g.ends(t.Context(), order, gateway.OutcomeUnknown))
		wantError(t, g.Resolve(t.Context(), first, Resolution{By: "anna"}), ErrTriedAgain)
		listed, err = g.Order(t.Context(), "", order)
		check(t, err)
		second, err := ParseToken(listed.Token())
		check(t, err)
		check(t, g.Resolve(t.Context(), second, Resolution{By: "anna", Exists: true}))
		g.wantState(t, StateCreated, 2)
	})
}
