package main

import (
	"context"
	"database/sql"
	"errors"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/cmd/internal/database"
	"github.com/cryptogw/gateway/sqlguard"
)

// An orderFile is the guard of --orders: a file of SQLite, which gateway-orders reads too. It is opened by the
// first Begin, so that an error says which order it is about.
type orderFile struct {
	path   string
	db     *sql.DB
	guard  *sqlguard.Guard
	failed error // of End
}

func (f *orderFile) open(ctx context.Context) (err error) {
	if f.guard != nil {
		return nil
	}
	if f.db, err = database.SQLite(f.path, true); err != nil {
		return err
	}
	guard, err := sqlguard.New(f.db)
	if err == nil {
		err = guard.Migrate(ctx)
	}
	if err != nil {
		return errors.Join(err, f.db.Close())
	}
	f.guard = guard
	return nil
}

func (f *orderFile) close() error {
	if f.guard == nil {
		return nil
	}
	return f.db.Close()
}

// Begin implements [gateway.OrderGuard].
func (f *orderFile) Begin(ctx context.Context, o gateway.Order) (gateway.Lease, error) {
	if err := f.open(ctx); err != nil {
		return gateway.Lease{}, err
	}
	return f.guard.Begin(ctx, o)
}

// End implements [gateway.OrderGuard].
func (f *orderFile) End(ctx context.Context, o gateway.Order, r gateway.OrderRecord) (gateway.OrderRecord, error) {
	r, f.failed = f.guard.End(ctx, o, r)
	return r, f.failed
}
