package order

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/testing/bubble"
)

// A withdrawn is one withdrawal of a schedule of waits.
type withdrawn struct {
	Upper   bool // the client knows its identifier in upper case
	Weather []weather
	Final   gateway.WithdrawalStatus // after the weather
	Odd     bool                     // its fee is null in the end
}

// A weather is what one inquiry meets.
type weather struct {
	Fault gatewaytest.Fault
	Early bool   // it comes in the first minute only
	Body  string // which another service sends in the place of the stand-in; empty for none. ID and PLACE are the withdrawal's
}

// A waiting is how one merchant waits for his withdrawals. Those of all merchants have the same
// identifiers.
type waiting struct {
	How         string // of ways
	Withdrawals []withdrawn
}

// ways are the ways to wait.
func ways() []string { return []string{"waited", "polled"} }

const finalByOptions = gateway.WithdrawalStatus("CANCELED")

// drawWeather draws what a wait outlives.
func drawWeather(t *rapid.T) weather {
	status := func(all ...int) int { return rapid.SampledFrom(all).Draw(t, "status") }
	with := func(member string, values ...string) weather {
		return weather{Body: odd("PENDING", member, rapid.SampledFrom(values).Draw(t, "value"))}
	}
	form := rapid.SampledFrom(gatewaytest.ErrorForms()).Draw(t, "form")
	switch rapid.IntRange(0, 12).Draw(t, "kind") {
	case 0:
		return weather{Fault: gatewaytest.FaultPage(status(200, 302, 400, 401, 403, 404, 410, 422, 502, 503, 525, 530))}
	case 1:
		return weather{Fault: gatewaytest.FaultEmpty(status(200, 204, 302, 400, 403, 404, 422, 502))}
	case 2:
		return weather{Fault: gatewaytest.FaultRefuse(status(404), "no such withdrawal"), Early: true}
	case 3:
		return weather{Fault: gatewaytest.FaultRefuseAs(form, 404, "Not Found"), Early: true}
	case 4:
		return weather{Fault: gatewaytest.FaultRefuseAs(form, status(200, 408, 409, 429, 500, 502, 503, 504, 599), "later")}
	case 5:
		return weather{Fault: gatewaytest.FaultRefuse(status(200, 429, 500, 503), "later").
			RetryAfter(rapid.SampledFrom([]string{"0", "1", "600", "soon"}).Draw(t, "retry after"))}
	case 6:
		return weather{Fault: gatewaytest.FaultRefuseAs(gatewaytest.ErrorNest, 403, "Forbidden")}
	case 7:
		return with(rapid.SampledFrom([]string{"fee", "network", "amount", "coin"}).Draw(t, "field"), "null", `""`, "{}")
	case 8:
		return with("status", `"ON_HOLD"`, `"PROCESSING"`, `"COMPLETE"`, "null", `""`)
	case 9: // the response to another inquiry
		return weather{Body: odd("COMPLETED", "withdrawRequestId", `"another"`)}
	case 10:
		return weather{Body: rapid.SampledFrom([]string{"<html>", "{}", "[]", "null", `{"message":"Operation was successful.","result":null,"meta":{}}`}).Draw(t, "body")}
	case 11:
		return weather{Fault: rapid.SampledFrom([]gatewaytest.Fault{
			gatewaytest.FaultTruncate(40), gatewaytest.FaultReset(), gatewaytest.FaultCommitThenDrop(),
		}).Draw(t, "loss")}
	default:
		return weather{}
	}
}

// odd returns the response to an inquiry with another value of a member.
func odd(status gateway.WithdrawalStatus, member, value string) string {
	members := ""
	for _, m := range [][2]string{
		{"status", `"` + string(status) + `"`}, {"destination", `"PLACE"`}, {"amount", `"1"`}, {"fee", `"1"`}, {"coin", `"c"`}, {"network", `"n"`}, {"withdrawRequestId", `"ID"`},
	} {
		if m[0] == member {
			m[1] = value
		}
		members += fmt.Sprintf(`,%q:%s`, m[0], m[1])
	}
	return `{"message":"Operation was successful.","meta":{},"result":{` + members[1:] + `}}`
}

func drawWaiting(t *rapid.T) waiting {
	one := rapid.Custom(func(t *rapid.T) withdrawn {
		return withdrawn{
			Upper:   rapid.Bool().Draw(t, "upper"),
			Weather: rapid.SliceOfN(rapid.Custom(drawWeather), 0, 8).Draw(t, "weather"),
			Final:   rapid.SampledFrom([]gateway.WithdrawalStatus{gateway.WithdrawalCompleted, gateway.WithdrawalFailed, finalByOptions}).Draw(t, "final"),
			Odd:     rapid.IntRange(0, 7).Draw(t, "odd") == 0,
		}
	})
	return waiting{rapid.SampledFrom(ways()).Draw(t, "how"), rapid.SliceOfN(one, 1, 7).Draw(t, "withdrawals")}
}

// A sky is the gateway of three merchants, a stand-in for each, in this weather. It is a transport.
type sky struct {
	mu       sync.Mutex
	begun    time.Time
	waitings []waiting
	gateways []*gatewaytest.Server
	polls    [][]int // by merchant and withdrawal
	ended    [][]int // that met the end
	wrong    []string
}

func (s *sky) note(holds bool, format string, args ...any) {
	if !holds {
		s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
	}
}

func withdrawalID(n int) string { return fmt.Sprintf("8ee74576-0bcf-4bfa-9c0c-de1a8cc8fa%02x", n) }

// asked is the identifier as the client knows it.
func (w withdrawn) asked(n int) string {
	if w.Upper {
		return strings.ToUpper(withdrawalID(n))
	}
	return withdrawalID(n)
}

func destination(merchant, n int) string { return fmt.Sprintf("of merchant %d, %d", merchant, n) }

// RoundTrip has the stand-in of the merchant respond, in the weather of the withdrawal.
func (s *sky) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		switch lost := recover(); lost {
		case nil:
		case http.ErrAbortHandler: // the connection
			resp, err = nil, io.EOF
		default:
			panic(lost)
		}
	}()
	var merchant, n int
	for merchant = range s.gateways {
		if s.gateways[merchant].APIKey == req.Header.Get("X-Api-Key") {
			break
		}
	}
	_, _ = fmt.Sscanf(strings.ToLower(path.Base(req.URL.Path)), "8ee74576-0bcf-4bfa-9c0c-de1a8cc8fa%x", &n)
	gw, one := s.gateways[merchant], &s.waitings[merchant].Withdrawals[n]
	s.polls[merchant][n]++
	for len(one.Weather) > 0 && one.Weather[0].Early && time.Since(s.begun) >= time.Minute {
		one.Weather = one.Weather[1:]
	}
	body := ""
	if len(one.Weather) > 0 {
		if body = one.Weather[0].Body; body == "" {
			gw.InjectFault(gatewaytest.OpWithdrawal, 1, one.Weather[0].Fault)
		}
		one.Weather = one.Weather[1:]
	} else {
		s.ended[merchant][n]++
		_ = gw.SetWithdrawalStatus(withdrawalID(n), string(one.Final))
		if one.Odd {
			body = odd(one.Final, "fee", "null")
		}
	}
	recorder := httptest.NewRecorder()
	if body != "" {
		recorder.WriteHeader(http.StatusCreated)
		_, _ = recorder.WriteString(strings.NewReplacer("ID", withdrawalID(n), "PLACE", destination(merchant, n)).Replace(body))
	} else {
		served := req.Clone(req.Context())
		served.Body = http.NoBody // as of every request that a server gets
		gw.Handler().ServeHTTP(recorder, served)
	}
	resp = recorder.Result()
	resp.Request = req
	return resp, nil
}

// wait makes the waits of all merchants at once, on one client, and returns what was wrong.
func (s *sky) wait() (polls int, wrong []string) {
	s.begun = time.Now()
	for merchant, waiting := range s.waitings {
		gw := gatewaytest.NewMemoryServer(gatewaytest.WithAPIKey((&step{Merchant: merchant}).key()))
		defer gw.Close()
		for n := range waiting.Withdrawals {
			gw.AddWithdrawal(gatewaytest.Withdrawal{
				Destination: destination(merchant, n), Amount: "1", Fee: "1", Coin: "USDT", Network: "Tron", WithdrawRequestID: withdrawalID(n),
			})
		}
		s.gateways = append(s.gateways, gw)
		s.polls = append(s.polls, make([]int, len(waiting.Withdrawals)))
		s.ended = append(s.ended, make([]int, len(waiting.Withdrawals)))
	}
	client, err := gateway.New("http://localhost/gateway", canary, gateway.WithHTTPClient(&http.Client{Transport: s}))
	if err != nil {
		return 0, []string{err.Error()}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Hour)
	defer cancel()
	var all sync.WaitGroup
	for merchant := range s.waitings {
		all.Go(func() { s.waitFor(ctx, client, merchant) })
	}
	all.Wait()
	for merchant, ended := range s.ended {
		for n, times := range ended {
			s.note(times == 1 && len(s.waitings[merchant].Withdrawals[n].Weather) == 0, "%s: the wait was told %d times that it is final", destination(merchant, n), times)
			polls += s.polls[merchant][n]
		}
	}
	return polls, s.wrong
}

// waitFor waits for the withdrawals of a merchant in his way.
func (s *sky) waitFor(ctx context.Context, client *gateway.Client, merchant int) {
	options := gateway.WaitOptions{Final: []gateway.WithdrawalStatus{finalByOptions}}
	key := gateway.WithAPIKey(s.gateways[merchant].APIKey)
	var ids []string
	for n, one := range s.waitings[merchant].Withdrawals {
		ids = append(ids, one.asked(n))
	}
	how, ended := s.waitings[merchant].How, map[string]bool{}
	end := func(seen *gateway.Withdrawal, err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if id := s.check(merchant, seen, err); id != "" {
			s.note(!ended[id], "%s ended twice", id)
			ended[id] = true
		}
	}
	var waits sync.WaitGroup
	for _, id := range ids {
		switch how {
		case "waited":
			waits.Go(func() {
				var last *gateway.Withdrawal
				own := options
				own.Changed = func(w *gateway.Withdrawal) { last = w }
				seen, err := client.WaitWithdrawal(ctx, id, own, key)
				end(seen, err)
				s.mu.Lock()
				defer s.mu.Unlock()
				s.note(seen == nil || last != nil && *last == *seen, "%s: the last change is %v, and the end %v", id, last, seen)
			})
		case "polled":
			waits.Go(func() {
				for {
					seen, over, err := client.PollWithdrawal(ctx, id, options, key)
					if over {
						end(seen, err)
						return
					}
					if wait(ctx, 10*time.Second) != nil {
						end(nil, ctx.Err())
						return
					}
				}
			})
		}
	}
	waits.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(len(ended) == len(ids), "merchant %d, %s: %d waits of %d have ended with their withdrawals", merchant, how, len(ended), len(ids))
}

// check compares how a wait has ended with its withdrawal, and returns the identifier of that.
func (s *sky) check(merchant int, seen *gateway.Withdrawal, err error) (id string) {
	status := gateway.WithdrawalStatusOf(err)
	ended, isWait := errors.AsType[*gateway.WaitError](err)
	switch {
	case err == nil:
		status = seen.Status
	case isWait && ended.Status != "":
		seen, id = ended.Last, ended.WithdrawRequestID
	default:
		s.note(false, "merchant %d: a wait ended with %v", merchant, err)
		return ""
	}
	if id == "" {
		id = seen.WithdrawRequestID
	}
	var n int
	_, _ = fmt.Sscanf(strings.ToLower(id), "8ee74576-0bcf-4bfa-9c0c-de1a8cc8fa%x", &n)
	one := s.waitings[merchant].Withdrawals[n]
	s.note(status == one.Final, "%s: it ended as %q: %v", destination(merchant, n), status, err)
	s.note(seen == nil || seen.Destination == destination(merchant, n), "%s: it ended with another one: %+v", destination(merchant, n), seen)
	s.note(isWait == errors.Is(err, gateway.ErrFinalStatus) || one.Final != finalByOptions, "%s: it ended with %v", destination(merchant, n), err)
	s.note(errors.Is(err, gateway.ErrWithdrawalFailed) == (one.Final == gateway.WithdrawalFailed), "%s: it ended with %v", destination(merchant, n), err)
	s.note(!one.Odd || isWait, "%s: it ended as a whole one, with a fee that is null: %v", destination(merchant, n), err)
	s.note(s.ended[merchant][n] > 0, "%s: it ended before its withdrawal", destination(merchant, n))
	return strings.ToLower(id)
}

// TestRapid_waits has three merchants wait for their withdrawals in the weather of real gateways: each
// wait ends with its own withdrawal, and none before. -rapid.checks is as of TestRapid.
func TestRapid_waits(t *testing.T) {
	waits, polls, most := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		s := &sky{waitings: rapid.SliceOfN(rapid.Custom(drawWaiting), merchants, merchants).Draw(rt, "waitings")}
		drawn, here := fmt.Sprintf("%+v", s.waitings), 0
		for _, waiting := range s.waitings {
			here += len(waiting.Withdrawals)
		}
		var wrong []string
		n := 0
		bubble.Test(t, func(*testing.T) { n, wrong = s.wait() })
		if len(wrong) > 0 {
			rt.Fatalf("%s\n%s", drawn, strings.Join(wrong, "\n"))
		}
		waits, polls, most = waits+here, polls+n, max(most, here)
	})
	t.Logf("rapid: %d waits, at most %d at once, %d polls", waits, most, polls)
	assert.GreaterOrEqual(t, most, 20)
}
