package gateway

import (
	"bytes"
	"cmp"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cryptogw/gateway/internal/doc"
	"github.com/cryptogw/gateway/internal/endpoint"
	"github.com/cryptogw/gateway/internal/money"
)

// This file decides what a response to the request for an invoice proves: docs/interface.md, I-173 and I-128. Evidence
// is a status, and the names, kinds and places of values. No message counts but the message of a success.

// provesInvoice reports whether a response of 2xx proves that its invoice was created. The first case that fits
// decides.
func (e envelope) provesInvoice(status int, orderID string, isDecoded bool) bool { // I-173
	switch record := e.record(); {
	case status > http.StatusCreated:
		return false
	case isDecoded:
		return true
	case e.check() != nil || claimOfWord(record, true) == failed || e.reportsFailure():
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

// mayHaveInvoice reports whether the body of an error response may have an invoice, or contradicts its status. The
// declared message comes from [WithSuccessMessage], or is empty.
func (e envelope) mayHaveInvoice(text []byte, declared, orderID string) bool {
	d := doubts{orderID: orderID}
	return e.isTwice || hasMessage(e.body, text, declared) || d.about(e.body, place{})
}

// hasMessage reports whether a response has the message of a success in its bytes, or in a text once unquoted. A short
// declared message counts only as a whole text.
func hasMessage(body doc.Node, text []byte, declared string) bool {
	const distinct = 16 // bytes
	has := func(message string) bool { return bytes.Contains(text, []byte(message)) }
	if has(successMessage) || len(declared) >= distinct && has(declared) {
		return true
	}
	for n := range body.All() {
		if n.Contains(successMessage) || declared != "" && n.Is(declared) {
			return true
		}
	}
	return false
}

// doubts find what else makes an error response doubtful.
type doubts struct {
	orderID string
	texts   int // how many texts were read as JSON
}

// maxTexts is how many texts of an error response are read as JSON; one with more is doubtful.
const maxTexts = 1_000

// about reports whether a value, or a value inside it, makes the response doubtful.
func (d *doubts) about(n doc.Node, in place) bool {
	own := plainName(n)
	name := cmp.Or(own, in.name) // an element has the name of its array
	switch claimed := claimOf(own, n); {
	case claimed == succeeded, claimed == conflicted:
		return true
	case name == "object" && isPayment(strings.ToLower(n.Text())):
		return true
	case d.isOfInvoice(n, name, in), d.aboutJSON(n, name):
		return true
	case own == "" && n.Kind() == '[':
		name = "items" // nobody names the cells of a table, and what a body is a list of
	}
	inside := place{
		name: name, isError: !n.Member(errorNames...).IsZero(), isInput: !n.Member(inputNames...).IsZero(),
	}
	for part := range n.Parts() {
		if d.about(part, inside) {
			return true
		}
	}
	return false
}

// aboutJSON reports whether a text is JSON that makes the response doubtful.
func (d *doubts) aboutJSON(n doc.Node, name string) bool {
	text := n.Text()
	if !strings.HasPrefix(text, "{") {
		return false
	}
	if d.texts++; d.texts > maxTexts {
		return true
	}
	var inner doc.Doc
	_ = inner.Parse([]byte(text), n.Keys(), doc.MaxUndocumented, jsontext.AllowDuplicateNames(true)) // it may be cut
	return d.about(inner.Root(), place{name: name})
}

// isOfInvoice reports whether a value may be of an invoice, by its name and place, or repeats the order's identifier in
// a record.
func (d *doubts) isOfInvoice(n doc.Node, name string, in place) bool {
	text, what := n.Scalar(), meaningOf(name, in.name)
	switch {
	case endpoint.SameID(text, d.orderID):
		return isRecord(in.name) && !in.isInput
	case !canIdentify(n, d.orderID):
		return false
	case what == ofInvoice:
		return true
	case in.isInput:
		return false
	case isRecord(in.name) && what > ofOther, isRecord(name) && isIdentifier(text):
		return true
	case n.Kind() == '0' && (name == "invoice" || name == "payment"): // its number
		return true
	default:
		return hasDigit(text) && (what == ofThing || what == identifier && !in.isError)
	}
}

// A place is an object or array in an error response.
type place struct {
	name    string // its plain name
	isError bool   // it describes an error
	isInput bool   // it describes the part of the request that is in error
}

// A claim is what a member says of the request.
type claim int8

const (
	noClaim    claim = iota
	succeeded        // it succeeded
	failed           // it failed
	conflicted       // it failed, but may have succeeded: a conflict, or a failure of the service
)

// reportsFailure reports whether a member beside the result reports a failure, or a member of the meta.
func (e envelope) reportsFailure() bool { return e.isFailed || reportsFailure(e.meta) }

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
	case "error", "errors", "errorcode", "errormessage", "haserror", "haserrors", "iserror":
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
			if claimOfWord(n, true) == failed {
				return true
			}
		}
	}
	return false
}

// claimOf reads what a member with this plain name says.
func claimOf(name string, n doc.Node) claim {
	switch name {
	case "success", "ok", "issuccess", "succeeded", "successful", "issuccessful":
		return claimOfWord(n, true)
	case "state", "type", "result":
		return claimOfWord(n, false)
	case "created", "invoicecreated": // false tells of a repeated order
		if n.Kind() == 't' {
			return succeeded
		}
	case "status", "statuscode", "httpstatus", "httpstatuscode":
		if said := claimOfWord(n, false); said != noClaim {
			return said
		}
		return claimOfStatus(n)
	case "code": // it may be a number of the service's own, so a code that looks like a success says nothing
		if said := claimOfStatus(n); said != succeeded {
			return said
		}
	}
	return noClaim
}

var (
	yesWords = [...]string{"true", "yes", "ok", "success", "succeeded", "successful", "created"}
	noWords  = [...]string{"false", "no", "error", "fail", "failed", "failure", "rejected", "declined", "denied"}
)

// maxWord is how long a word is in JSON, in bytes: a long text is not copied to be compared.
const maxWord = 128

// claimOfWord reads a boolean, or a word that stands for one. With digits, 1 and 0 do so too.
func claimOfWord(n doc.Node, digits bool) claim {
	if len(n.Raw()) > maxWord {
		return noClaim
	}
	switch kind, word := n.Kind(), strings.ToLower(n.Scalar()); {
	case kind == 't', digits && word == "1", slices.Contains(yesWords[:], word):
		return succeeded
	case kind == 'f', digits && word == "0", slices.Contains(noWords[:], word):
		return failed
	default:
		return noClaim
	}
}

// claimOfStatus reads a status of HTTP, with its reason or without, as in 409 CONFLICT.
func claimOfStatus(n doc.Node) claim {
	digits, _, _ := strings.Cut(n.Scalar(), " ")
	amount, _ := money.Parse([]byte(digits)) // zero if it is no number
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
		text := strings.ToLower(inner.Scalar())
		if inner.Kind() == 't' || text != "ok" && text != "success" && !isNone(text) {
			return true
		}
	}
	return false
}

// isNone reports whether a text stands for no value, as programs write it.
func isNone(text string) bool {
	isText := func(word string) bool { return strings.EqualFold(text, word) }
	return isZeros(text) || slices.ContainsFunc([]string{"null", "none", "undefined", "nan", "n/a"}, isText)
}

// isZeros reports whether a text is empty, or a number, a code or a UUID of zeros.
func isZeros(text string) bool { return strings.Trim(text, "0.-") == "" }

// recordNames are the plain names of members that may be an invoice, or have one; their plurals are so too.
var recordNames = [...]string{
	"result", "data", "payload", "response", "invoice", "payment", "order", "transaction", "charge", "checkout",
	"receipt", "deposit", "address", "item",
}

func isRecordName(name string) bool {
	return slices.Contains(recordNames[:], name) || slices.Contains(recordNames[:], strings.TrimSuffix(name, "s"))
}

// isRecord reports whether a value of an error response may be an invoice, by its name.
func isRecord(name string) bool { return isRecordName(name) || isPayment(name) }

// isPayment reports whether a name may name an invoice or a payment, such as createdInvoice.
func isPayment(name string) bool {
	return strings.Contains(name, "invoice") || strings.Contains(name, "payment") && !strings.Contains(name, "method")
}

// hasInvoice reports whether a result, or a record in it by its name, is surely an invoice.
func (e envelope) hasInvoice(result doc.Node, orderID string) bool {
	hasOwnCode := e.hasOwnCode()
	for n := range result.All() {
		name := plainName(n)
		if n != result && !isRecordName(name) {
			continue
		}
		record := n.Only()
		if isInvoice(record, name, orderID, hasOwnCode || describesOther(record)) {
			return true
		}
	}
	return false
}

// isInvoice reports whether a member of a record with a plain name is surely of an invoice. An identifier alone is not
// enough in doubt: an error, a coin and a person have identifiers, too.
func isInvoice(record doc.Node, name, orderID string, inDoubt bool) bool {
	for n := range record.Parts() {
		what := meaningOf(plainName(n), name)
		isSure := what == ofInvoice || what == identifier && !inDoubt && hasDigit(n.Scalar())
		if isSure && canIdentify(n, orderID) {
			return true
		}
	}
	return false
}

// A meaning says what a member is, by its name.
type meaning int8

const (
	ofOther    meaning = iota // it is none of these
	perhaps                   // it may be of an invoice
	ofThing                   // it identifies something, such as a job
	identifier                // it identifies its record
	ofInvoice                 // it is of an invoice, or of the place to pay one
)

func hasDigit(text string) bool { return strings.ContainsAny(text, "0123456789") }

// canIdentify reports whether a member has a text or a number that can be an identifier, an address or a link, and is
// not the order's own identifier. A text with a space is a sentence.
func canIdentify(n doc.Node, orderID string) bool {
	text := n.Scalar()
	return !isNone(text) && !strings.ContainsFunc(text, unicode.IsSpace) && !endpoint.SameID(text, orderID)
}

// The words of names.
var (
	endings = [...]string{"uuid", "id", "url", "uri", "link", "address", "hash", "number", "no", "reference", "ref"}

	invoiceWords = [...]string{ // before an ending in a name of an invoice
		"invoice", "payment", "pay", "payin", "checkout", "cashier", "hosted", "deposit", "charge", "track", "txn",
		"prepay", "qrcode",
	}
	beginnings = [...]string{ // of names such as invoiceNumber
		"invoice", "pay", "checkout", "deposit", "wallet", "qr", "token",
	}
	otherWords = [...]string{ // before an ending in a name of something else
		"session", "merchant", "user", "account", "client", "coin", "network", "currency", "currencie", "asset", "chain",
		"ip", "email", "remote", "info", "callback", "webhook", "operation", "activity", "plan", "policy",
		"limit", "quota", "project", "store",
	}
	errorWords = [...]string{ // in a name of what helps to find an error
		"request", "trace", "tracking", "correlation", "conversation", "log", "error", "debug", "event",
		"doc", "help", "support",
	}
	inputNames = []string{"loc", "field", "property", "constraints"}
	errorNames = []string{
		"title", "detail", "details", "description", "message", "msg", "reason", "source", "code", "fields",
	}
)

// meaningOf returns what a member with a plain name is. The url in a checkout is as good as a checkoutUrl.
func meaningOf(name, recordName string) meaning {
	switch name {
	case "id", "uuid":
		if namesOther(recordName) {
			return ofOther
		}
		return identifier
	case "paid", "unpaid", "valid", "invalid", "isvalid", "void": // one word, which is no identifier
		return ofOther
	case "url", "uri", "link":
		name = recordName + name
	case "href":
		name = recordName + "url"
	case "address", "walletaddress", "cryptoaddress":
		return ofInvoice
	}
	for _, ending := range endings {
		before, found := strings.CutSuffix(name, ending)
		switch {
		case !found:
		case slices.Contains(invoiceWords[:], before):
			return ofInvoice
		case namesOther(before):
			return ofOther
		case strings.HasSuffix(ending, "id"):
			return ofThing
		default:
			return perhaps
		}
	}
	if slices.ContainsFunc(beginnings[:], func(word string) bool { return strings.HasPrefix(name, word) }) {
		return perhaps
	}
	return ofOther
}

// namesOther reports whether the name of a record, or a name without its ending, names something that is no invoice.
func namesOther(name string) bool {
	isIn := func(word string) bool { return strings.Contains(name, word) }
	return slices.Contains(otherWords[:], strings.TrimSuffix(name, "s")) ||
		!isPayment(name) && slices.ContainsFunc(errorWords[:], isIn)
}

// describesOther reports whether a record describes an error, a coin or a person.
func describesOther(record doc.Node) bool {
	return !record.Member(inputNames...).IsZero() || !record.Member(errorNames...).IsZero() ||
		!record.Member("name", "symbol", "email").IsZero()
}

// hasOwnCode reports whether the body has a code which does not stand for a success.
func (e envelope) hasOwnCode() bool {
	for n := range e.body.Parts() {
		isSuccess := isZeros(n.Scalar()) || claimOfStatus(n) == succeeded || claimOfWord(n, true) == succeeded
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
	isOtherSign := func(c rune) bool { return c != '-' && c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) }
	return len(text) >= 6 && strings.ContainsAny(text, "123456789") && !strings.ContainsFunc(text, isOtherSign)
}
