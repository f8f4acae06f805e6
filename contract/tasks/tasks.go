package main

import (
	"encoding/csv"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/cryptogw/gateway/gatewaytest"
)

// grace is how long the gateway keeps a response for something that a good program does not do.
const grace = time.Second

// A task is one of the six of TASKS.md.
type task struct {
	name string
	run  func(t *trial)
}

func tasks() []task {
	return []task{
		{"checkout", checkout},
		{"restart", restart},
		{"processes", processes},
		{"page", page},
		{"reconciliation", reconciliation},
		{"deploy", deploy},
	}
}

// grade runs a task, and returns what is wrong with the program. What is open must be in pending
// within this time.
func grade(k task, program string, within time.Duration) (problems []string, err error) {
	dir, err := os.MkdirTemp("", "task")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	t := &trial{
		front: newFront(), program: program, dir: dir, within: within, said: map[string]line{}, exported: map[string]bool{},
	}
	defer t.close()
	k.run(t)
	return t.problems, nil
}

// checkout: each order meets another fault, and all are paid once more.
func checkout(t *trial) {
	there := t.elsewhere.URL + "/gateway/api/invoice/create"
	t.meet("A-2", t.inject(gatewaytest.FaultCommitThenDrop()))
	t.meet("A-4", t.badGatewayAfter)
	t.meet("A-6", t.inject(gatewaytest.FaultRedirect(http.StatusTemporaryRedirect, there)))
	t.meet("A-7", t.inject(gatewaytest.FaultRefuse(http.StatusUnprocessableEntity, "Invalid amount")))
	t.meet("A-8", t.inject(gatewaytest.FaultTruncate(10)))
	t.meet("A-9", t.inject(gatewaytest.FaultReset()))
	all := []string{"A-1", "A-2", "A-3", "A-4", "A-5", "A-6", "A-7", "A-8", "A-9", "A-10"}
	t.pay(all...)
	t.created("A-1", "A-3", "A-5", "A-10")
	t.pay(all...)
	t.created("A-1", "A-3", "A-5", "A-7", "A-10")
	t.judgeEnd(all...)
}

// restart: the program is killed twice, after and before the gateway creates an invoice.
func restart(t *trial) {
	all := []string{"B-1", "B-2", "B-3", "B-4"}
	kept := t.hold("B-2")
	defer kept.release()
	t.meet("B-3", t.inject(gatewaytest.FaultStall()))
	first := t.start(input(all...), "pay")
	t.reached(first, kept.created, "B-2")
	first.kill()
	second := t.start(input(all...), "pay")
	t.reached(second, t.asked("B-3"), "B-3")
	second.kill()
	t.pay(all...)
	t.created("B-1", "B-4")
	t.judgeEnd(all...)
	t.pay(all...) // when they are in pending
	t.judgeEnd(all...)
}

// processes: two of them are at the same order.
func processes(t *trial) {
	kept := t.hold("C-1")
	defer kept.release()
	first := t.start(input("C-1", "C-2", "C-3"), "pay")
	if t.reached(first, kept.created, "C-1") {
		<-t.asked("C-1")
	}
	second := t.start(input("C-4", "C-1", "C-2", "C-3"), "pay")
	t.reached(second, t.asked("C-4"), "C-4")
	select { // a second request, or none
	case <-t.asked("C-1"):
	case <-second.ended:
	case <-time.After(grace):
	}
	kept.release()
	t.answered(t.end(first), "C-1", "C-2", "C-3")
	t.answered(t.end(second), "C-4", "C-1", "C-2", "C-3")
	t.created("C-1", "C-2", "C-3", "C-4")
	t.judgeEnd("C-1", "C-2", "C-3", "C-4")
}

// page: orders are shown while they are being paid, and after the program was killed.
func page(t *trial) {
	t.meet("D-2", t.inject(gatewaytest.FaultCommitThenDrop()))
	t.pay("D-1", "D-2")
	kept := t.hold("D-3")
	defer kept.release()
	first := t.start(input("D-3"), "pay")
	t.reached(first, kept.created, "D-3")
	asked := t.count()
	t.show("D-1", "D-2", "D-3", "D-4")
	first.kill()
	t.show("D-1", "D-2", "D-3", "D-4")
	t.created("D-1")
	if l := t.last("D-4"); l.State != "not_sent" {
		t.wrong("an order that nobody has paid is said to be %q", l.State)
	}
	if n := t.count(); n != asked {
		t.wrong("%d requests were sent for a page", n-asked)
	}
	t.judgeEnd("D-1", "D-2", "D-3", "D-4")
}

// show shows each order on a page.
func (t *trial) show(orders ...string) {
	for _, order := range orders {
		if lines := t.do("", "show", order); len(lines) != 1 || lines[0].Order != order {
			t.wrong("no answer: show %s has %d lines", order, len(lines))
		}
	}
}

// reconciliation: the file of an hour ago says nothing of an order, the next one has it.
func reconciliation(t *trial) {
	all := []string{"E-1", "E-2", "E-3"}
	t.meet("E-2", t.inject(gatewaytest.FaultCommitThenDrop()))
	t.meet("E-3", t.inject(gatewaytest.FaultBadGateway()))
	t.pay("E-1")
	earlier := t.export()
	t.pay(all...)
	t.do(earlier, "reconcile")
	t.show(all...)
	t.pay("E-2")
	t.judgeEnd(all...)
	t.mu.Lock()
	t.exported["E-2"] = true
	t.mu.Unlock()
	t.do(t.export(), "reconcile")
	t.show(all...)
	t.created("E-1", "E-2")
	t.judgeEnd(all...)
	for _, l := range t.do("", "pending") {
		if l.Order != "E-3" {
			t.wrong("still pending: order %s, which the file has", l.Order)
		}
	}
}

// export is the file of the gateway's operator.
func (t *trial) export() string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write([]string{"order_id", "invoice_id", "created", "price", "amount"})
	for _, i := range t.gw.Invoices() {
		_ = w.Write([]string{i.OrderID, i.ID, i.CreatedAt.UTC().Format(time.RFC3339Nano), i.Price, i.Amount})
	}
	w.Flush()
	return b.String()
}

// deploy: the old process is asked to end while it waits for the gateway, and the new one gets what
// has no line, and the last order that has one.
func deploy(t *trial) {
	all := []string{"F-1", "F-2", "F-3", "F-4"}
	kept := t.hold("F-2")
	defer kept.release()
	before := t.start(input(all...), "pay")
	t.reached(before, kept.created, "F-2")
	go func() {
		select { // it leaves, or it waits
		case <-kept.left:
		case <-before.ended:
		case <-time.After(grace):
		}
		kept.release()
	}()
	before.stop()
	answered := len(before.said())
	t.pay(all[min(max(0, answered-1), len(all)):]...)
	t.created("F-1", "F-3", "F-4")
	t.judgeEnd(all...)
}
