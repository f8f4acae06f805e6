package sqlguard

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
)

// What an order costs, which begins and succeeds, and a refusal, which gets the invoice: by one worker, and by
// 16 with as many connections. The servers do not wait for their disks, and are beside the tests, or 1 ms away.
func BenchmarkGuard(b *testing.B) {
	for name, table := range tables {
		for _, distance := range []time.Duration{0, time.Millisecond} {
			if name == "SQLite" && distance > 0 {
				continue
			}
			for _, workers := range []int{1, 16} {
				prefix := name + "/" + distance.String() + "/workers=" + strconv.Itoa(workers)
				b.Run(prefix+"/orders", func(b *testing.B) { table(b).benchmark(b, distance, workers, creates) })
				b.Run(prefix+"/refusals", func(b *testing.B) { table(b).benchmark(b, distance, workers, isRefusedOrder) })
			}
		}
	}
}

func creates(b *testing.B, g *Guard, i int) error {
	o := orderOf("A-" + strconv.Itoa(i))
	if err := g.asks(b.Context(), &o); err != nil {
		return err
	}
	_, err := g.End(b.Context(), o, gateway.OrderRecord{
		Outcome: gateway.OutcomeSucceeded, Request: o.Request, SentAt: time.Now(), StatusCode: 201,
		Invoice: []byte(`{"id":4711,"orderId":"` + o.Request.OrderID + `","payment_url":"https:\/\/pay.example\/i\/4711"}`),
	})
	return err
}

func isRefusedOrder(b *testing.B, g *Guard, _ int) error {
	if err := g.begins(b.Context(), "A-0"); err != errCreated {
		return err
	}
	return nil
}

// benchmark measures what workers do with a table that is at a distance, and how often their connections ask and are answered.
func (w testDB) benchmark(b *testing.B, distance time.Duration, workers int, do func(*testing.B, *Guard, int) error) {
	w.guard(b) // creates the table
	trips := new(atomic.Int64)
	if w.dialect != SQLite {
		p := w.behindProxy(b)
		p.distance, trips = distance, &p.trips
	}
	g := w.mustNew(b)
	g.db.SetMaxOpenConns(workers)
	g.db.SetMaxIdleConns(workers)
	check(b, creates(b, g, 0)) // connects
	trips.Store(0)
	var next atomic.Int64
	var working sync.WaitGroup
	b.ResetTimer()
	for range workers {
		working.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if err := do(b, g, int(i)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	working.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
	b.ReportMetric(float64(trips.Load())/float64(b.N), "trips/op")
}
