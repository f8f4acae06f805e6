package sqlguard

import (
	"crypto/rand"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
)

const productionPage = "../docs/production.md"

// productionSQL is the SQL block of docs/production.md that contains a text, for a table of another name.
func (w testDB) productionSQL(t *testing.T, part string) string {
	t.Helper()
	page, err := os.ReadFile(productionPage)
	check(t, err)
	for _, block := range strings.Split(string(page), "```sql\n")[1:] {
		if text, _, _ := strings.Cut(block, "```"); strings.Contains(text, part) {
			return strings.ReplaceAll(text, "gateway_orders", w.table)
		}
	}
	t.Fatalf("%s has no statement with %q", productionPage, part)
	return ""
}

// After a restore, the statement of docs/production.md makes what was sent since the backup unknown,
// also an order that was free in the backup. What the backup has as created or unknown stays.
func TestRestore(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		g, ctx, names := w.guard(t), t.Context(), []string{"new", "rejected", "absent", "created", "unknown"}
		g.once(t, "rejected", gateway.OutcomeRejected)
		g.once(t, "absent", gateway.OutcomeUnknown)
		o, err := g.Order(ctx, "", "absent")
		check(t, err)
		check(t, g.Resolve(ctx, o, Resolution{By: "anna"}))
		check(t, g.begins(ctx, "created"))
		check(t, recorded(g.End(ctx, orderOf("created"), successOf("created"))))
		g.once(t, "unknown", gateway.OutcomeUnknown)
		before, err := g.Order(ctx, "", "unknown")
		check(t, err)

		w.markLost(t, g, names)
		for id, want := range map[string]error{
			"new": errUnknown, "rejected": errUnknown, "absent": errUnknown,
			"created": errCreated, "unknown": errUnknown,
		} {
			wantError(t, g.begins(ctx, id), want)
		}
		pending, err := g.Pending(ctx, PendingQuery{})
		check(t, err)
		if len(pending) != 4 {
			t.Errorf("%d are pending", len(pending))
		}
		for _, o := range pending {
			sent := time.Date(2026, 11, 22, 3, 14, 15, 0, time.UTC)
			if o.ID == "unknown" && !o.Since.Equal(before.Since) || o.ID != "unknown" && (!o.Record.SentAt.Equal(sent)) {
				t.Errorf("%+v", o)
			}
			check(t, g.Resolve(ctx, o, Resolution{By: "anna"}))
			check(t, g.begins(ctx, o.ID)) // none exists: it can be sent
		}
	})
}

// markLost runs the statement for orders that were sent since the backup.
func (w testDB) markLost(t *testing.T, g *Guard, names []string) {
	t.Helper()
	lost := w.table + "_lost"
	execute(t, g.db, `CREATE TABLE `+lost+` (order_id text, sent_at `+w.dialect.fill("", "{time}")[0]+`)`)
	t.Cleanup(func() { execute(t, g.db, `DROP TABLE `+lost) })
	for _, id := range names {
		execute(t, g.db, `INSERT INTO `+lost+` VALUES ('`+id+`', '2026-11-22T03:14:15.000Z')`)
	}
	execute(t, g.db, strings.ReplaceAll(w.productionSQL(t, "FROM lost"), "FROM lost", "FROM "+lost))
}

// The grants of docs/production.md are enough for what each role does, and for no more.
func TestGrants(t *testing.T) {
	w := newPostgres(t)
	owner := w.guard(t)
	suffix := "_" + strings.ToLower(rand.Text())
	roles := strings.NewReplacer("shop_sender", "shop_sender"+suffix, "shop_resolver", "shop_resolver"+suffix,
		"shop_pruner", "shop_pruner"+suffix, "shop_monitor", "shop_monitor"+suffix)
	execute(t, owner.db, roles.Replace(w.productionSQL(t, "GRANT")))
	as := func(role string) *Guard {
		behind := w
		behind.dsn += "&role=" + role + suffix
		t.Cleanup(func() { execute(t, owner.db, `DROP OWNED BY `+role+suffix+`; DROP ROLE `+role+suffix) })
		g, err := New(behind.open(t), WithTable(w.table))
		check(t, err)
		return g
	}
	ctx, sender, resolver, pruner, monitor := t.Context(), as("shop_sender"), as("shop_resolver"), as("shop_pruner"), as("shop_monitor")
	sender.once(t, order, gateway.OutcomeUnknown)
	summary, err := monitor.PendingSummary(ctx)
	if err != nil || summary.Count != 1 {
		t.Errorf("%+v, %v", summary, err)
	}
	pending, err := resolver.Pending(ctx, PendingQuery{})
	check(t, err)
	check(t, resolver.Resolve(ctx, pending[0], Resolution{By: "anna", Exists: true}))
	_, err = pruner.Prune(ctx, 24*time.Hour)
	check(t, err)
	check(t, sender.Migrate(ctx)) // at each start, where there is nothing to do

	_, noPrune := sender.Prune(ctx, 24*time.Hour)
	for what, err := range map[string]error{
		"the sender prunes": noPrune, "the resolver sends": resolver.begins(ctx, "another"),
		"the monitor resolves": monitor.Resolve(ctx, pending[0], Resolution{By: "anna"}), "the pruner sends": pruner.begins(ctx, "another"),
	} {
		if sqlState(err) != "42501" {
			t.Errorf("%s: %v", what, err)
		}
	}
}
