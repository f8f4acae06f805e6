package gateway

import (
	"bytes"
	"iter"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/cryptogw/gateway/internal/doc"
	"github.com/cryptogw/gateway/internal/endpoint"
)

// This file decides what a response to the request for an invoice proves: docs/interface.md, I-173 and I-128. Evidence
// is a status, and the names, kinds and places of values. Messages count for nothing, except that of a success.

// provesInvoice reports whether a response of 2xx proves that its invoice was created. The first case that fits
// decides.
func (e envelope) provesInvoice(status int, orderID string, isDecoded bool) bool { // I-173
	switch record := e.record(); {
	case status > http.StatusCreated:
		return false
	case isDecoded:
		return true
	case e.check() != nil || record.Kind() == 'f' || e.reportsFailure():
		return false
	case e.success:
		return !reportsFailure(record) || e.hasInvoice(record, orderID)
	case status == http.StatusCreated:
		return !reportsFailure(record) && e.hasInvoice(record, orderID)
	default:
		return false
	}
}

// provesNoInvoice reports whether an error response proves that no invoice was created.
func (r refusal) provesNoInvoice(status int) bool { // I-128
	switch status {
	case 401, 402, 404, 405, 407, 410, 411, 413, 414, 415, 421, 425, 426, 429, 431, 451:
		return !r.doubtful // a service decides these before it reads the body of a request
	case 400, 403, 422:
		return !r.doubtful && r.isOfService(status) // an intermediary may send one after an invoice was created
	default:
		return false // such as 409, which may answer a request that an intermediary has delivered twice
	}
}

// asksElsewhere returns the base URL that a redirect asks for, which wants the same request at another scheme or
// host, or with a slash at the end of its path. A redirect to another path may lead to what was created: some
// frameworks send 307 unless told otherwise.
func (c *call) asksElsewhere(resp *http.Response) (base string, isElsewhere bool) {
	to, err := c.url.Parse(resp.Header.Get("Location"))
	if err != nil || !slices.Contains([]int{301, 307, 308}, resp.StatusCode) {
		return "", false
	}
	base = c.client.base.Moved(&c.url, to)
	isSame := base == c.client.base.String() && strings.HasSuffix(to.Path, "/") == strings.HasSuffix(c.url.Path, "/")
	return base, base != "" && !isSame
}

// mayHaveInvoice reports whether the body of an error response may have an invoice, or contradicts its status. Another
// is the message of [WithSuccessMessage].
func (e envelope) mayHaveInvoice(text []byte, another, orderID string) bool {
	if e.isTwice || hasMessage(text, another) {
		return true
	}
	for n := range e.body.All() {
		name := plainName(n)
		said := claimOf(name, n)
		isRecord := isRecordName(name) || isPayment(name) || n == e.body && n.Kind() == '['
		isObject := n.Kind() == '{' && n != e.body && !slices.Contains(otherWords[:], name)
		switch {
		case n.Contains(successMessage), another != "" && n.Is(another):
			return true
		case said == succeeded, said == conflicted:
			return true
		case meaningOf(name) == ofInvoice && tells(n, orderID):
			return true
		case isRecord && (isPerhapsInvoice(n, orderID) || repeats(n, orderID)):
			return true
		case isObject && bestMeaning(n, name, orderID) == identifier && !isOther(n):
			return true
		case name == "object" && isPayment(strings.ToLower(n.Text())):
			return true
		}
	}
	return false
}

// hasMessage reports whether the bytes of a response have the message of a success, wherever it is. Another message
// may be too short to be looked for there.
func hasMessage(text []byte, another string) bool {
	const distinct = 16 // bytes
	has := func(message string) bool { return bytes.Contains(text, []byte(message)) }
	return has(successMessage) || len(another) >= distinct && has(another)
}

// A claim is what a member says of the request.
type claim int8

const (
	noClaim    claim = iota
	succeeded        // it succeeded
	failed           // it failed
	conflicted       // it failed, but may have succeeded: a conflict, or a failure of the service
)

// reportsFailure reports whether a member of the body beside the result reports a failure, or a member of the meta.
func (e envelope) reportsFailure() bool {
	for n := range e.body.Parts() {
		if n != e.result && !n.IsNamed("message") && isFailure(n) {
			return true
		}
	}
	return reportsFailure(e.meta)
}

// reportsFailure reports whether a member of a record reports a failure.
func reportsFailure(record doc.Node) bool {
	for n := range record.Parts() {
		if isFailure(n) {
			return true
		}
	}
	return false
}

func isFailure(n doc.Node) bool {
	name := plainName(n)
	switch name {
	case "error", "errors", "errorcode", "errormessage", "haserror", "iserror":
		return holdsError(n)
	}
	said := claimOf(name, n)
	return said == failed || said == conflicted
}

// saysNo reports whether a member of the body says in a word that the request failed, and not by a status.
func (e envelope) saysNo() bool {
	for n := range e.body.Parts() {
		switch plainName(n) {
		case "success", "ok", "issuccess", "status":
			if claimOfWord(n, "1", "0") == failed {
				return true
			}
		}
	}
	return false
}

// claimOf reads what a member with this plain name says.
func claimOf(name string, n doc.Node) claim {
	switch name {
	case "success", "ok", "issuccess":
		return claimOfWord(n, "1", "0")
	case "state", "type":
		return claimOfWord(n, "", "")
	case "created": // false tells of a repeated order
		if n.Kind() == 't' {
			return succeeded
		}
	case "status", "statuscode", "httpstatus", "httpstatuscode":
		if said := claimOfWord(n, "", ""); said != noClaim {
			return said
		}
		return claimOfStatus(n)
	case "code": // it may be a number of the service's own: one that looks like a success says nothing
		if said := claimOfStatus(n); said != succeeded {
			return said
		}
	}
	return noClaim
}

// claimOfWord reads a boolean, or a word or a number that stands for one.
func claimOfWord(n doc.Node, yes, no string) claim {
	switch n.Kind() {
	case 't':
		return succeeded
	case 'f':
		return failed
	}
	switch word := strings.ToLower(n.Scalar()); word {
	case "":
		return noClaim
	case yes, "true", "yes", "ok", "success", "succeeded", "successful", "created":
		return succeeded
	case no, "false", "no", "error", "fail", "failed", "failure":
		return failed
	default:
		return noClaim
	}
}

// claimOfStatus reads a status of HTTP.
func claimOfStatus(n doc.Node) claim {
	amount, err := n.Amount()
	if err != nil {
		return noClaim
	}
	switch status := amount.IntPart(); {
	case status >= 200 && status < 300:
		return succeeded
	case status == 409 || status >= 500 && status < 600:
		return conflicted
	case status >= 400 && status < 500:
		return failed
	default:
		return noClaim
	}
}

// holdsError reports whether the value of an error is one, and not the word or the number for none.
func holdsError(n doc.Node) bool {
	if code := n.Member("code"); !code.IsZero() {
		n = code
	}
	for inner := range n.All() {
		switch text := strings.ToLower(inner.Scalar()); text {
		case "ok", "success", "none", "no", "no error", "null", "false":
		default:
			if inner.Kind() == 't' || !isZeros(text) {
				return true
			}
		}
	}
	return false
}

// isZeros reports whether a text is empty, or a number or a code of zeros.
func isZeros(text string) bool { return strings.Trim(text, "0.") == "" }

// recordNames are the plain names of members that may be an invoice, or have one.
var recordNames = [...]string{
	"result", "results", "data", "payload", "response", "invoice", "invoices", "payment", "payments", "order", "orders",
	"transaction", "transactions", "charge", "checkout", "bill", "receipt", "deposit", "address", "item", "items",
}

func isRecordName(name string) bool { return slices.Contains(recordNames[:], name) }

// isPayment reports whether a name may be that of an invoice or a payment, such as createdInvoice.
func isPayment(name string) bool {
	return strings.Contains(name, "invoice") || strings.Contains(name, "payment") && !strings.Contains(name, "method")
}

// hasInvoice reports whether a result, or a record in it by its name, is surely an invoice. An identifier alone is not
// enough where something tells of an error, a coin or a person instead, which have identifiers, too.
func (e envelope) hasInvoice(result doc.Node, orderID string) bool {
	hasOwnCode := e.hasOwnCode()
	for n := range result.All() {
		if n != result && !isRecordName(plainName(n)) {
			continue
		}
		for record := range elements(n) {
			switch what := bestMeaning(record, plainName(n), orderID); {
			case what == ofInvoice:
				return true
			case what == identifier && !isOther(record) && !hasOwnCode:
				return true
			}
		}
	}
	return false
}

// isPerhapsInvoice reports whether a value by the name of a record may be an invoice: an identifier or a URL, or an
// object with a member whose name allows it. What is said of the place of an error is none.
func isPerhapsInvoice(n doc.Node, orderID string) bool {
	for record := range elements(n) {
		if isIdentifier(record.Scalar()) {
			return true
		}
		if bestMeaning(record, plainName(n), orderID) > other && record.Member(placeNames[:]...).IsZero() {
			return true
		}
	}
	return false
}

// repeats reports whether a member of a record is the order's identifier: in a refusal, of an order that exists.
func repeats(n doc.Node, orderID string) bool {
	for record := range elements(n) {
		for m := range record.Parts() {
			name := plainName(m)
			if (strings.HasSuffix(name, "id") || strings.HasPrefix(name, "order")) && endpoint.SameID(m.Scalar(), orderID) {
				return true
			}
		}
	}
	return false
}

// elements yields the elements of an array, or any other value itself.
func elements(n doc.Node) iter.Seq[doc.Node] {
	if n.Kind() == '[' {
		return n.Parts()
	}
	return func(yield func(doc.Node) bool) { yield(n) }
}

// A meaning says what a member is, by its name.
type meaning int8

const (
	other      meaning = iota
	perhaps            // it may be of an invoice
	identifier         // it identifies something
	ofInvoice          // it is of an invoice, or of the place to pay one
)

// bestMeaning returns what the members of a record are at best. The record has a plain name itself: the url in
// checkout is as good as a checkoutUrl. An identifier has a digit.
func bestMeaning(record doc.Node, recordName, orderID string) (best meaning) {
	for n := range record.Parts() {
		if !tells(n, orderID) {
			continue
		}
		name := plainName(n)
		if name == "url" || name == "uri" || name == "link" {
			name = recordName + name
		}
		what := meaningOf(name)
		if what == identifier && !strings.ContainsAny(n.Scalar(), "0123456789") {
			what = perhaps
		}
		best = max(best, what)
	}
	return best
}

// tells reports whether a member has a text or a number that can be an identifier, an address or a link, and is not
// the order's own identifier. A text with a space is a sentence.
func tells(n doc.Node, orderID string) bool {
	text := n.Scalar()
	return !isZeros(text) && !strings.ContainsFunc(text, unicode.IsSpace) && !endpoint.SameID(text, orderID)
}

// The words of names: before an ending in the name of an invoice, and of something else; and at the beginning of names
// such as invoiceNumber, which may be of an invoice.
var (
	endings      = [...]string{"uuid", "id", "url", "uri", "link", "address", "hash"}
	invoiceWords = [...]string{
		"invoice", "payment", "pay", "payin", "checkout", "hosted", "deposit", "charge", "track", "txn", "qrcode",
	}
	otherWords = [...]string{
		"request", "trace", "correlation", "log", "error", "debug", "session", "merchant", "user", "account", "client",
		"coin", "network", "currency", "asset", "chain", "ip", "email", "remote", "doc", "docs", "documentation", "help",
		"support", "info", "callback", "webhook",
		"pa", "unpa", "val", "isval", "inval", "vo", // one word: paid, valid, void
	}
	beginnings = [...]string{"invoice", "pay", "checkout", "deposit", "wallet", "qr", "token"}
	placeNames = [...]string{"loc", "field", "property", "constraints"}
)

// meaningOf returns what a member with a plain name is.
func meaningOf(name string) meaning {
	switch name {
	case "id", "uuid":
		return identifier
	case "address", "walletaddress", "cryptoaddress":
		return ofInvoice
	}
	for _, ending := range endings {
		before, found := strings.CutSuffix(name, ending)
		switch {
		case !found:
		case slices.Contains(invoiceWords[:], before):
			return ofInvoice
		case slices.Contains(otherWords[:], before):
			return other
		default:
			return perhaps
		}
	}
	if slices.ContainsFunc(beginnings[:], func(word string) bool { return strings.HasPrefix(name, word) }) {
		return perhaps
	}
	return other
}

// isOther reports whether a record tells of an error, a coin or a person.
func isOther(record doc.Node) bool {
	return !record.Member(placeNames[:]...).IsZero() || !record.Member(
		"title", "detail", "details", "description", "message", "msg", "reason", "source", "code", "fields",
		"name", "symbol", "email",
	).IsZero()
}

// hasOwnCode reports whether the body has a code which does not stand for a success.
func (e envelope) hasOwnCode() bool {
	for n := range e.body.Parts() {
		isSuccess := isZeros(n.Scalar()) || claimOfStatus(n) == succeeded || claimOfWord(n, "1", "") == succeeded
		if strings.HasSuffix(plainName(n), "code") && !isSuccess {
			return true
		}
	}
	return false
}

// isIdentifier reports whether a text is an identifier or a link by its looks, and no word.
func isIdentifier(text string) bool {
	if strings.HasPrefix(text, "http") {
		return true
	}
	isOther := func(c rune) bool { return c != '-' && c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) }
	return len(text) >= 6 && strings.ContainsAny(text, "123456789") && !strings.ContainsFunc(text, isOther)
}
