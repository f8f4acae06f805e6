package gatewaytest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
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
	planned []change // those of a time are ordered by it
}

// A change is a change of status at a time, or after a number of inquiries.
type change struct {
	at        time.Time // zero for one after inquiries
	inquiries int
	status    string
}

// Withdrawals returns a copy of the withdrawals with their current status, in the
// order in which they were added. A new server has a PENDING and a COMPLETED
// withdrawal.
func (s *Server) Withdrawals() []Withdrawal {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []Withdrawal{}
	for _, w := range s.withdrawals {
		w.update(s.now(), 0)
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
		w.Status = "PENDING"
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
	return s.change(id, func(w *withdrawal) { w.Status = status })
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
	return s.change(id, func(w *withdrawal) {
		w.planned = append(w.planned, change{inquiries: inquiries, status: status})
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
	return s.change(id, func(w *withdrawal) {
		w.planned = append(w.planned, change{at: s.now().Add(after), status: status})
		slices.SortStableFunc(w.planned, func(a, b change) int { return a.at.Compare(b.at) })
	})
}

// change calls alter with a withdrawal while it holds the lock.
func (s *Server) change(id string, alter func(*withdrawal)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.withdrawal(id)
	if w == nil {
		return fmt.Errorf("gatewaytest: no withdrawal %q", id)
	}
	alter(w)
	return nil
}

// withdrawal returns the withdrawal with an identifier, with its current status,
// or nil. The lock is held.
func (s *Server) withdrawal(id string) *withdrawal {
	for _, w := range s.withdrawals {
		if strings.EqualFold(w.WithdrawRequestID, id) {
			w.update(s.now(), 0)
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
	w.update(s.now(), 1)
	return success(c.status, w.Withdrawal)
}

// update counts inquiries, and makes the planned changes that are due.
func (w *withdrawal) update(now time.Time, inquiries int) {
	planned := w.planned
	w.planned = nil
	for _, c := range planned {
		c.inquiries -= inquiries
		if c.at.IsZero() && c.inquiries < 0 || !c.at.IsZero() && !now.Before(c.at) {
			w.Status = c.status
		} else {
			w.planned = append(w.planned, c)
		}
	}
}

// seedWithdrawals returns the initial withdrawals of a server.
func seedWithdrawals() []Withdrawal {
	return []Withdrawal{
		{
			Status: "PENDING", Destination: "TQn9Y2khEsLJW1ChVWFMSMeRDow5KcbLSE", Amount: "120.50",
			Fee: "1", Coin: "USDT", Network: "Tron", WithdrawRequestID: seedID("withdrawal 1"),
		},
		{
			Status: "COMPLETED", Destination: "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq", Amount: "0.01500000",
			Fee: "0.0002", Coin: "BTC", Network: "Bitcoin", WithdrawRequestID: seedID("withdrawal 2"),
		},
	}
}
