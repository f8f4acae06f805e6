package gatewaytest

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// The documented statuses of a withdrawal.
const (
	pending   = "PENDING"
	completed = "COMPLETED"
)

// A Withdrawal is the result of a withdrawal inquiry, with the documented fields.
type Withdrawal struct {
	Status            string `json:"status"` // PENDING, FAILED or COMPLETED, or what a test has set
	Destination       string `json:"destination"`
	Amount            string `json:"amount"` // a decimal number
	Fee               string `json:"fee"`    // a decimal number
	Coin              string `json:"coin"`
	Network           string `json:"network"`
	WithdrawRequestID string `json:"withdrawRequestId"`
}

// A withdrawal is one that the server knows, and what will become of it.
type withdrawal struct {
	Withdrawal
	plans []plan
	dates []date // in their order
}

// A plan is a change of status that waits for a number of inquiries.
type plan struct {
	inquiries int
	status    string
}

// A date is a change of status that waits for a time.
type date struct {
	at     time.Time
	status string
}

// Withdrawals returns a copy of the withdrawals, in the order in which they were
// added. A new server has one that is PENDING and one that is COMPLETED.
func (s *Server) Withdrawals() []Withdrawal {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []Withdrawal{}
	for _, w := range s.withdrawals {
		w.keepDates(s.now())
		all = append(all, w.Withdrawal)
	}
	return all
}

// AddWithdrawal adds a withdrawal and returns its identifier, which is made up
// when there is none. An empty status becomes PENDING. A withdrawal of the same
// identifier is replaced.
func (s *Server) AddWithdrawal(w Withdrawal) string {
	if w.WithdrawRequestID == "" {
		w.WithdrawRequestID = newID()
	}
	if w.Status == "" {
		w.Status = pending
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.withdrawal(w.WithdrawRequestID); known != nil {
		*known = withdrawal{Withdrawal: w}
	} else {
		s.withdrawals = append(s.withdrawals, &withdrawal{Withdrawal: w})
	}
	return w.WithdrawRequestID
}

// SetWithdrawalStatus sets the status of a withdrawal to any text, be it one the
// service documents or not. It is an error when there is none of that identifier.
func (s *Server) SetWithdrawalStatus(id, status string) error {
	return s.change(id, func(w *withdrawal) error {
		w.Status = status
		return nil
	})
}

// SetStatusAfterRequests plans a change: the next so many inquiries still see what they
// would have seen, and the one after them finds the new status. Inquiries that
// are refused, or that meet a [Fault] which does not carry them out, do not count.
// Several plans may wait at once, each counts from its own call. It is an error
// when inquiries is negative or there is no withdrawal of that identifier.
func (s *Server) SetStatusAfterRequests(id string, inquiries int, status string) error {
	if inquiries < 0 {
		return fmt.Errorf("gatewaytest: %d inquiries", inquiries)
	}
	return s.change(id, func(w *withdrawal) error {
		w.plans = append(w.plans, plan{inquiries, status})
		return nil
	})
}

// SetStatusAfter plans a change by the server's clock (see [Server.Now]): from
// the moment that it has moved on by so much, the withdrawal has the new status,
// which may be any text. Several plans may wait at once; of two for the same
// moment the later call wins. It is an error when after is negative or there is no
// withdrawal of that identifier.
func (s *Server) SetStatusAfter(id string, after time.Duration, status string) error {
	if after < 0 {
		return fmt.Errorf("gatewaytest: after %v", after)
	}
	return s.change(id, func(w *withdrawal) error {
		w.dates = append(w.dates, date{s.now().Add(after), status})
		slices.SortStableFunc(w.dates, func(a, b date) int { return a.at.Compare(b.at) })
		return nil
	})
}

// change alters a withdrawal under the lock.
func (s *Server) change(id string, alter func(*withdrawal) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.withdrawal(id)
	if w == nil {
		return fmt.Errorf("gatewaytest: no withdrawal %q", id)
	}
	return alter(w)
}

// withdrawal finds one by its identifier, as it is now, or nil. The lock is held.
func (s *Server) withdrawal(id string) *withdrawal {
	for _, w := range s.withdrawals {
		if w.WithdrawRequestID == id {
			w.keepDates(s.now())
			return w
		}
	}
	return nil
}

// inquire carries out a withdrawal inquiry. The lock is held.
func (s *Server) inquire(c *call) answer {
	if refusal, refused := c.refuseHeaderKey(); refused {
		return refusal
	}
	w := s.withdrawal(c.args[0])
	if w == nil {
		return failure(http.StatusNotFound, "no such withdrawal")
	}
	w.countInquiry()
	return success(http.StatusCreated, w.Withdrawal) // 201 is documented
}

// keepDates makes the changes whose time has come.
func (w *withdrawal) keepDates(now time.Time) {
	for len(w.dates) > 0 && !now.Before(w.dates[0].at) {
		w.Status = w.dates[0].status
		w.dates = w.dates[1:]
	}
}

// countInquiry counts the plans down and fulfils the ones that are due.
func (w *withdrawal) countInquiry() {
	w.plans = slices.DeleteFunc(w.plans, func(p plan) bool {
		if p.inquiries == 0 {
			w.Status = p.status
		}
		return p.inquiries == 0
	})
	for i := range w.plans {
		w.plans[i].inquiries--
	}
}

// seedWithdrawals are the withdrawals a server starts with.
func seedWithdrawals() []*withdrawal {
	return []*withdrawal{
		{Withdrawal: Withdrawal{
			Status: pending, Destination: "TQn9Y2khEsLJW1ChVWFMSMeRDow5KcbLSE", Amount: "120.50",
			Fee: "1", Coin: "USDT", Network: "Tron", WithdrawRequestID: seedID("withdrawal 1"),
		}},
		{Withdrawal: Withdrawal{
			Status: completed, Destination: "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq", Amount: "0.01500000",
			Fee: "0.0002", Coin: "BTC", Network: "Bitcoin", WithdrawRequestID: seedID("withdrawal 2"),
		}},
	}
}
