package sqlguard

import (
	"encoding/base64"
	"fmt"
)

// maxToken is more than the token of an order that the client sends can have.
const maxToken = 16 << 10

// Token returns a text from which [ParseToken] makes an order that [Guard.Resolve] accepts: for
// a form or a shell. It names the merchant, the order and its last attempt, in A-Z, a-z,
// 0-9, "-" and "_", and does not begin with "-". Of an order that is not unknown it is empty,
// because there is nothing to resolve.
func (o Order) Token() string {
	if o.State != StateUnknown {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "1 %d %q %q", o.attempt, o.Merchant, o.ID))
}

// ParseToken returns the order of a token, with what [Guard.Resolve] needs and nothing else:
// ID, Merchant, State and the last attempt. The error for another text is a [*gateway.ArgumentError].
func ParseToken(token string) (Order, error) {
	o := Order{State: StateUnknown}
	if len(token) <= maxToken {
		text, _ := base64.RawURLEncoding.DecodeString(token)
		_, _ = fmt.Sscanf(string(text), "1 %d %q %q", &o.attempt, &o.Merchant, &o.ID)
	}
	if o.ID == "" || o.Token() != token {
		return Order{}, badArgument("token", "is not a token of an order, or not a whole one: copy it again from where the order was listed")
	}
	return o, nil
}
