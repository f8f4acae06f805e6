package gatewaytest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Statuses of a withdrawal.
const (
	pending   = "PENDING"
	completed = "COMPLETED"
)

// A Withdrawal is the result of a withdrawal inquiry, with the documented fields.
type Withdrawal struct {
	Status            string `json:"status"`            // PENDING, FAILED or COMPLETED, or any text that a test has set
	Destination       string `json:"destination"`       // any text
	Amount            string `json:"amount"`            // a decimal number
	Fee               string `json:"fee"`               // a decimal number
	Coin              string `json:"coin"`              // any text
	Network           string `json:"network"`           // any text
	WithdrawRequestID string `json:"withdrawRequestId"` // the identifier by which it is asked for
}

// A withdrawal is a withdrawal with its planned changes of status.
type withdrawal struct {
	Withdrawal
	counted []countedChange
	timed   []timedChange // ordered by time
}

// A countedChange is a change of status after a number of inquiries.
type countedChange struct {
	inquiries int
	status    string
}

// A timedChange is a change of status at a time.
type timedChange struct {
	at     time.Time
	status string
}

// Withdrawals returns a copy of the withdrawals with their current status, in the
// order in which they were added. A new server has a PENDING and a COMPLETED
// withdrawal.
func (s *Server) Withdrawals() []Withdrawal {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []Withdrawal{}
	for _, w := range s.withdrawals {
		w.applyDue(s.now())
		all = append(all, w.Withdrawal)
	}
	return all
}

// AddWithdrawal adds a withdrawal and returns its identifier. An empty identifier
// is replaced by a random one, and an empty status by PENDING. A withdrawal with
// the same identifier is replaced, along with its planned changes.
func (s *Server) AddWithdrawal(w Withdrawal) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.WithdrawRequestID == "" {
		w.WithdrawRequestID = newID()
	}
	if w.Status == "" {
		w.Status = pending
	}
	if known := s.withdrawal(w.WithdrawRequestID); known != nil {
		*known = withdrawal{Withdrawal: w}
	} else {
		s.withdrawals = append(s.withdrawals, &withdrawal{Withdrawal: w})
	}
	return w.WithdrawRequestID
}

// SetWithdrawalStatus sets the status of a withdrawal to any text, documented or
// not. It returns an error if there is no withdrawal with that identifier.
func (s *Server) SetWithdrawalStatus(id, status string) error {
	return s.change(id, func(w *withdrawal) error {
		w.Status = status
		return nil
	})
}

// SetStatusAfterRequests plans a change of status: it takes effect with the
// inquiry after the given number of further inquiries. Inquiries that are refused
// or that meet a [Fault] that does not carry them out do not count. A withdrawal
// may have several planned changes; each counts from its own call.
// SetStatusAfterRequests returns an error if inquiries is negative or there is no
// withdrawal with that identifier.
func (s *Server) SetStatusAfterRequests(id string, inquiries int, status string) error {
	if inquiries < 0 {
		return fmt.Errorf("gatewaytest: SetStatusAfterRequests with %d inquiries, want 0 or more", inquiries)
	}
	return s.change(id, func(w *withdrawal) error {
		w.counted = append(w.counted, countedChange{inquiries, status})
		return nil
	})
}

// SetStatusAfter plans a change of status by the server's clock (see
// [Server.Now]): once the clock has moved forward by the given duration, the
// withdrawal has the new status, which may be any text. A withdrawal may have
// several planned changes; of two for the same time, the later call wins.
// SetStatusAfter returns an error if after is negative or there is no withdrawal
// with that identifier.
func (s *Server) SetStatusAfter(id string, after time.Duration, status string) error {
	if after < 0 {
		return fmt.Errorf("gatewaytest: SetStatusAfter with %v, want 0 or more", after)
	}
	return s.change(id, func(w *withdrawal) error {
		w.timed = append(w.timed, timedChange{s.now().Add(after), status})
		slices.SortStableFunc(w.timed, func(a, b timedChange) int { return a.at.Compare(b.at) })
		return nil
	})
}

// change calls alter with a withdrawal while it holds the lock.
func (s *Server) change(id string, alter func(*withdrawal) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.withdrawal(id)
	if w == nil {
		return fmt.Errorf("gatewaytest: no withdrawal %q", id)
	}
	return alter(w)
}

// withdrawal returns the withdrawal with an identifier, with its current status,
// or nil. The lock is held.
func (s *Server) withdrawal(id string) *withdrawal {
	for _, w := range s.withdrawals {
		if strings.EqualFold(w.WithdrawRequestID, id) {
			w.applyDue(s.now())
			return w
		}
	}
	return nil
}

// inquire carries out a withdrawal inquiry. The lock is held.
func (s *Server) inquire(c *call) response {
	w := s.withdrawal(c.args[0])
	if w == nil {
		return failure(http.StatusNotFound, "no such withdrawal")
	}
	w.countInquiry()
	return success(c.op, w.Withdrawal)
}

// applyDue applies the timed changes that are due.
func (w *withdrawal) applyDue(now time.Time) {
	for len(w.timed) > 0 && !now.Before(w.timed[0].at) {
		w.Status = w.timed[0].status
		w.timed = w.timed[1:]
	}
}

// countInquiry applies the counted changes that are due and counts the others down.
func (w *withdrawal) countInquiry() {
	w.counted = slices.DeleteFunc(w.counted, func(c countedChange) bool {
		if c.inquiries == 0 {
			w.Status = c.status
		}
		return c.inquiries == 0
	})
	for i := range w.counted {
		w.counted[i].inquiries--
	}
}

// seedWithdrawals returns the initial withdrawals of a server.
func seedWithdrawals() []Withdrawal {
	return []Withdrawal{
		{
			Status: pending, Destination: "TQn9Y2khEsLJW1ChVWFMSMeRDow5KcbLSE", Amount: "120.50",
			Fee: "1", Coin: "USDT", Network: "Tron", WithdrawRequestID: seedID("withdrawal 1"),
		},
		{
			Status: completed, Destination: "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq", Amount: "0.01500000",
			Fee: "0.0002", Coin: "BTC", Network: "Bitcoin", WithdrawRequestID: seedID("withdrawal 2"),
		},
	}
}
