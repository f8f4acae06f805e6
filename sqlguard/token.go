package sqlguard

import (
	"encoding/base32"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/orders"
)

// maxToken is the length in bytes of the longest text that ParseToken reads.
const maxToken = 4 << 10

// The first byte of a token is a letter, so that no shell takes it for a flag and no spreadsheet for a number.
const tokenPrefix = "T"

var tokenText = base32.StdEncoding.WithPadding(base32.NoPadding)

// Token returns an order of unknown outcome as a text, from which [ParseToken] makes an order that [Guard.Resolve]
// accepts: for a form, a file or a shell. It names the merchant, the order, its last attempt and the time of
// reading, and has a checksum. It begins with a letter and consists of A-Z and 2-7, so that no spreadsheet changes it. The
// token of any other order is empty, because there is nothing to resolve.
func Token(o gateway.OrderStatus) string {
	attempt := orders.AttemptOf(o.Attempt)
	if o.State != gateway.OrderUnknown || attempt == 0 {
		return ""
	}
	text := binary.AppendVarint(nil, attempt)
	text = binary.AppendVarint(text, o.GuardReadAt.UnixMicro())
	text = binary.AppendVarint(text, o.ReadAt.UnixMicro())
	text = binary.AppendUvarint(text, uint64(len(o.Merchant)))
	text = append(text, o.Merchant...)
	text = append(text, o.OrderID...)
	text = binary.BigEndian.AppendUint32(text, crc32.ChecksumIEEE(text))
	return tokenPrefix + tokenText.EncodeToString(text)
}

// ParseToken returns the order of a token with the members that [Guard.Resolve] uses, and no others. The error for another
// text, or a part of a token, is a [*gateway.ArgumentError].
func ParseToken(token string) (gateway.OrderStatus, error) {
	wrong := badArgument("token", "is not a token of an order, or not a whole one: copy it again from where the order was listed")
	if len(token) > maxToken {
		return gateway.OrderStatus{}, wrong
	}
	text, err := tokenText.DecodeString(strings.TrimPrefix(token, tokenPrefix))
	if err != nil || len(text) < 4 {
		return gateway.OrderStatus{}, wrong
	}
	text = text[:len(text)-4]
	var numbers [3]int64
	for i := range numbers {
		number, size := binary.Varint(text)
		if size <= 0 {
			return gateway.OrderStatus{}, wrong
		}
		numbers[i], text = number, text[size:]
	}
	length, size := binary.Uvarint(text)
	if size <= 0 || length >= uint64(len(text)-size) { // #nosec G115 -- not negative: size is within text
		return gateway.OrderStatus{}, wrong
	}
	names := string(text[size:])
	o := gateway.OrderStatus{
		OrderID: names[length:], Merchant: names[:length], State: gateway.OrderUnknown, Attempt: orders.NameOf(numbers[0]),
		GuardReadAt: time.UnixMicro(numbers[1]).UTC(), ReadAt: time.UnixMicro(numbers[2]).UTC(),
	}
	if Token(o) != token { // the checksum is wrong
		return gateway.OrderStatus{}, wrong
	}
	return o, nil
}
