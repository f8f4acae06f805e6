package sqlguard

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
)

// Tokens of orders that are as odd as orders can be.
func tokenOrders() map[string]gateway.OrderStatus {
	return map[string]gateway.OrderStatus{
		"of the client's own merchant": {OrderID: "order-1"},
		"of a named merchant":          {OrderID: "order-1", Merchant: "shop"},
		"with quotes and spaces":       {OrderID: `a "b" \ ü`, Merchant: "the 'shop'"},
		"like a formula":               {OrderID: "=1+1", Merchant: "@sum"},
		"as long as an order can be":   {OrderID: strings.Repeat("\u0301", maxOrder/2), Merchant: strings.Repeat("\u0301", maxMerchant/2)},
	}
}

// A token comes back as its order, survives a spreadsheet, and no other text is a token.
func TestToken(t *testing.T) {
	t.Parallel()
	read := time.Date(2026, 11, 27, 3, 14, 15, 926535000, time.UTC)
	for name, o := range tokenOrders() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.State, o.Attempt, o.GuardReadAt, o.ReadAt = gateway.OrderUnknown, "1y2p0ij32e8e7", read, read.Add(-time.Hour)
			token := Token(o)
			if got, err := ParseToken(token); err != nil || !reflect.DeepEqual(got, o) {
				t.Errorf("%+v, %v", got, err)
			}
			if !strings.HasPrefix(token, "T") || strings.Trim(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
				t.Errorf("%q", token)
			}
			for i := 0; i < len(token); i += 1 + len(token)/200 {
				for _, text := range []string{token[:i], token[:i] + "A" + token[i+1:], token[:i] + "B" + token[i+1:], token + token[i:]} {
					if got, err := ParseToken(text); text != token && !errors.Is(err, gateway.ErrInvalidArgument) {
						t.Errorf("%q is a token: %+v, %v", text, got, err)
					}
				}
			}
		})
	}
	for _, o := range []gateway.OrderStatus{{OrderID: "order-1", Attempt: "1", State: gateway.OrderCreated}, {OrderID: "order-1", State: gateway.OrderUnknown}} {
		if token := Token(o); token != "" {
			t.Errorf("%q of %+v", token, o)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	for _, o := range tokenOrders() {
		o.State, o.Attempt = gateway.OrderUnknown, "1"
		f.Add(Token(o))
	}
	f.Add(tokenPrefix + tokenText.EncodeToString(make([]byte, 20)))
	f.Fuzz(func(t *testing.T, text string) {
		if o, err := ParseToken(text); err == nil && (Token(o) != text || o.OrderID == "") {
			t.Errorf("%q is a token of %+v, whose token is %q", text, o, Token(o))
		}
	})
}
