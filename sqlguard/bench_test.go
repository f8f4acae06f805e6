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
	for name, table := range map[string]func(testing.TB) testDB{"PostgreSQL": newPostgres, "MariaDB": newMariaDB, "SQLite": newSQLite} {
		for _, distance := range []time.Duration{0, time.Millisecond} {
			if name == "SQLite" && distance > 0 {
				continue
			}
			for _, workers := range []int{1, 16} {
				prefix := name + "/" + distance.String() + "/workers=" + strconv.Itoa(workers)
				b.Run(prefix+"/orders", func(b *testing.B) { benchmarkOrders(b, table(b), distance, workers) })
				b.Run(prefix+"/refusals", func(b *testing.B) { benchmarkRefusals(b, table(b), distance, workers) })
			}
		}
	}
}

func benchmarkOrders(b *testing.B, w testDB, distance time.Duration, workers int) {
	g, trips := w.benchmarked(b, distance, workers)
	inParallel(b, trips, workers, func(_, i int) error {
		o := orderOf("A-" + strconv.Itoa(i))
		if err := granted(&o)(g.Begin(b.Context(), o)); err != nil {
			return err
		}
		return recorded(g.End(b.Context(), o, successOf(o)))
	})
}

func benchmarkRefusals(b *testing.B, w testDB, distance time.Duration, workers int) {
	g, trips := w.benchmarked(b, distance, workers)
	for worker := range workers {
		o := orderOf(strconv.Itoa(worker))
		check(b, granted(&o)(g.Begin(b.Context(), o)))
		check(b, recorded(g.End(b.Context(), o, successOf(o))))
	}
	inParallel(b, trips, workers, func(worker, _ int) error {
		if err := refused(g.Begin(b.Context(), orderOf(strconv.Itoa(worker)))); err != errCreated {
			return err
		}
		return nil
	})
}

// successOf is what a call records of a success.
func successOf(o gateway.Order) gateway.OrderRecord {
	return gateway.OrderRecord{
		Outcome: gateway.OutcomeSucceeded, Request: o.Request, SentAt: time.Now(), StatusCode: 201,
		Invoice: []byte(`{"id":4711,"orderId":"` + o.Request.OrderID + `","payment_url":"https:\/\/pay.example\/i\/4711","address":"bc1q9h5yx3kq0w2v6u7l8m","amount":"0.00012500"}`),
	}
}

func inParallel(b *testing.B, trips *atomic.Int64, workers int, do func(worker, i int) error) {
	var next atomic.Int64
	var working sync.WaitGroup
	check(b, do(0, 0)) // connects
	trips.Store(0)
	b.ResetTimer()
	for worker := range workers {
		working.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if err := do(worker, int(i)); err != nil {
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

// benchmarked returns a guard over a table that is at a distance, and how often its connections have asked
// and were answered.
func (w *testDB) benchmarked(b *testing.B, distance time.Duration, workers int) (*Guard, *atomic.Int64) {
	w.guard(b) // creates the table
	trips := new(atomic.Int64)
	if w.dialect != SQLite {
		p := w.behindProxy(b)
		p.distance, trips = distance, &p.trips
	}
	db := w.open(b)
	db.SetMaxOpenConns(workers)
	db.SetMaxIdleConns(workers)
	g, err := New(db, WithTable(w.table))
	check(b, err)
	return g, trips
}
