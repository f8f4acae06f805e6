package sqlguard

import (
	"strings"

	"github.com/cryptogw/gateway"
)

// A model is what a guard should know of one order. It is the reference that
// TestInterleavings compares the guards with, and knows nothing of how they work.
type model struct {
	attempts int
	held     holding // the attempt that Begin has granted and that nothing has ended since
	unknown  fact    // of attempts that have ended, and whose invoice may exist; no requestID: none
	asked    string  // the requests of those attempts
	created  fact    // of the invoice that exists; no outcome: none
}

// A holding is an attempt between Begin and End.
type holding struct {
	requestID, request string // no requestID: none
	over               bool   // its lease
}

// A fact is what is known of an order: an OrderRecord whose values have short names.
type fact struct {
	outcome   gateway.Outcome
	request   string // a letter, or "" if it is not known
	requestID string
	invoice   string
	body      string // evidence of a failure, with its status and cause; "" if the process did not report one
	sent      moment
}

// A moment is when an attempt was sent.
type moment int8

const (
	notSent moment = iota
	whenBegun
	asReported
)

func (m *model) state() State {
	switch {
	case m.held.requestID != "" && !m.held.over:
		return StateInFlight
	case m.held.requestID != "" || m.unknown.requestID != "":
		return StateUnknown
	case m.created.outcome == gateway.OutcomeSucceeded:
		return StateCreated
	default:
		return StateFree
	}
}

// record is what is known in the present state.
func (m *model) record() fact {
	switch state := m.state(); {
	case state == StateInFlight:
		return fact{request: m.held.request, requestID: m.held.requestID}
	case state == StateUnknown && m.held.over:
		// The process has not said what became of it. What is known of an earlier one stays.
		return fact{request: m.held.request, requestID: m.held.requestID, body: m.unknown.body, sent: whenBegun}
	case state == StateUnknown:
		return m.unknown
	default:
		return m.created
	}
}

// begin returns what is known, and the state that refuses the order, or free.
func (m *model) begin(requestID, request string, resubmit bool) (known fact, refused State) {
	known, refused = m.record(), m.state()
	if refused != StateFree && (refused != StateUnknown || !resubmit) {
		return known, refused
	}
	m.attempts++
	m.unknown, m.asked = known, m.asked+m.held.request // the lease of an attempt that is held is over
	m.held = holding{requestID: requestID, request: request}
	return known, StateFree
}

// end returns what is known after a call that began with the requestID.
func (m *model) end(requestID string, r fact) fact {
	if m.held.requestID == requestID {
		m.held = holding{}
	}
	switch {
	case r.outcome == gateway.OutcomeSucceeded:
		m.unknown, m.asked = fact{}, ""
		if m.created.invoice == "" {
			m.created = r
		}
		return m.created
	case r.outcome == gateway.OutcomeUnknown && m.created.outcome != gateway.OutcomeSucceeded:
		m.unknown, m.asked = r, m.asked+r.request
	}
	switch state := m.state(); {
	case state == StateUnknown, state == StateCreated:
		return m.record()
	case state == StateInFlight && r.outcome != gateway.OutcomeUnknown && m.unknown.requestID != "":
		return m.unknown // a refusal proves nothing about that one
	default:
		return r
	}
}

func (m *model) leaseOver() { m.held.over = true }

// resolve ends an unknown outcome, as somebody has found who had read the order when it had been
// begun so often.
func (m *model) resolve(attempts int, exists bool, invoice string) error {
	switch {
	case m.state() != StateUnknown:
		return ErrNotUnknown
	case m.attempts != attempts:
		return ErrTriedAgain
	}
	if exists {
		m.created = m.record()
		m.created.outcome, m.created.invoice = gateway.OutcomeSucceeded, invoice
		if asked := m.asked + m.held.request; strings.Trim(asked, asked[:1]) != "" {
			m.created.request = "" // it is not known whose invoice exists
		}
	}
	m.held, m.unknown, m.asked = holding{}, fact{}, ""
	return nil
}
