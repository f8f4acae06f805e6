package attempt

import "time"

// A Failure says whether another attempt may follow a failed one.
type Failure struct {
	Retry     bool          // another attempt may do better, and cannot do harm
	Throttled bool          // the service asks for fewer requests
	Free      bool          // another attempt takes nothing from the budget
	After     time.Duration // what the service asks to wait; 0 for nothing
}

// A Next says whether another attempt follows.
type Next struct {
	Wait time.Duration // until the next attempt; 0 if there is none
	Cost int64         // how much it has taken from the budget
	Note string        // why there is none, if the error does not show it
}

// A Retrier decides for all calls of a client whether an attempt is made again, and when,
// by one policy and one budget. It is safe for concurrent use.
type Retrier struct {
	Policy
	Budget
}

// Succeeded refills the budget after a call that succeeded at its n-th attempt: by what its last retry took, or by one
// token for a call without a retry.
func (r *Retrier) Succeeded(n int, last Next) {
	if n == 1 {
		r.Refund(1)
		return
	}
	r.Refund(last.Cost)
}

// Next decides what follows the n-th attempt, which has failed, before a deadline; the zero time is none.
func (r *Retrier) Next(n int, failure Failure, deadline time.Time) Next {
	if !failure.Retry || n >= r.MaxAttempts || failure.After > r.MaxRetryAfter {
		return Next{}
	}
	wait := max(r.delay(n, failure.Throttled), failure.After, 1)
	if !deadline.IsZero() && time.Until(deadline) < wait {
		return Next{Note: "the next one would be after the deadline"}
	}
	cost := int64(retryCost)
	switch {
	case failure.Free:
		cost = 0
	case failure.Throttled:
		cost = throttledCost
	}
	if !r.Take(cost) {
		return Next{Note: "the retry budget was empty"}
	}
	return Next{Wait: wait, Cost: cost}
}
