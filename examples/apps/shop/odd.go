package main

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/shopspring/decimal"
)

// This file tells the merchant what is odd at the gateway, in one place. It is derived from
// the responses that the order guard keeps, so that it ends once a setting or the gateway is
// right.

// An oddity is something that the shop did not expect of the gateway.
type oddity struct {
	What   string // is equal for all orders that it is about
	Seen   string // what it is in this case; "" if there is nothing to add
	Advice string // what the merchant can do
	Stops  bool   // whether the buyer is shown no way to pay
	First  order  // the first order that shows it; none for what is odd in a list
}

// payments reads how to pay orders, and remembers which coins need a tag.
func (s *shop) payments(ctx context.Context, orders ...order) ([]payment, error) {
	tags, err := s.db.tags(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]payment, len(orders))
	for i, o := range orders {
		pair := [2]string{o.Coin, o.Network}
		all[i] = s.cfg.fields.payment(o, tags[pair])
		if all[i].Tag != "" && tags[pair] == "" {
			if err := s.db.addTag(ctx, o); err != nil {
				return nil, err
			}
			tags[pair] = o.ID
		}
	}
	return all, nil
}

// maxResponses is how many of the newest responses are looked at.
const maxResponses = 200

// oddities returns what is odd, each kind once.
func (s *shop) oddities(ctx context.Context) (all oddities, err error) {
	orders, err := s.db.newestCreated(ctx, maxResponses)
	if err != nil {
		return nil, err
	}
	payments, err := s.payments(ctx, orders...)
	if err != nil {
		return nil, err
	}
	withTag := slices.ContainsFunc(payments, func(p payment) bool { return !p.tagless })
	for i, p := range payments {
		if !withTag && p.Stopped == nil {
			p.Odd = append(p.Odd, oddity{What: "no response has " + s.cfg.fields.tag, Advice: "Ask the operator of the gateway whether SHOP_INVOICE_TAG is right. If it is not, payments that need a tag are lost."})
		}
		for _, odd := range p.Odd {
			odd.First = orders[i]
			all.add(odd)
		}
	}
	s.addListed(ctx, &all)
	return all, nil
}

// addListed adds what is odd in the lists of coins and rates. A gateway that does not
// respond does not hold the page up for long.
func (s *shop) addListed(ctx context.Context, all *oddities) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.pageTimeout/4)
	defer cancel()
	for _, currency := range []string{"usd", "eur"} {
		q, err := s.quote(ctx, product{Price: decimal.NewFromInt(100), Currency: currency}) // any price
		if err != nil {
			all.add(oddity{What: "the coins or the exchange rates cannot be read: nothing can be sold", Seen: singleLine(printable(err.Error()), maxPrintable), Advice: askOperator})
			return
		}
		for _, list := range []string{"coins", "exchange rates"} {
			for _, o := range q.Skipped[list] {
				_, member, _ := strings.Cut(strings.TrimPrefix(o.Pointer, "/result/"), "/")
				seen := strings.TrimSuffix(cmp.Or(o.CoinSymbol, o.Pointer)+" on "+o.NetworkName, " on ")
				all.add(oddity{What: "left out of the list of " + list + ": " + member + " " + o.Reason, Seen: seen, Advice: askOperator})
			}
		}
		for _, o := range q.All {
			switch {
			case o.Problem != "" && o.Odd != "":
				all.add(oddity{What: "the exchange rate in " + currency + " is missing, cannot be read, or is listed with two values", Seen: o.Pair.Coin.Symbol, Advice: askOperator})
			case o.Odd != "":
				all.add(oddity{What: "a coin cannot be told apart, or not converted", Seen: o.Pair.Coin.Symbol + " on " + o.Pair.Network.Name + ": " + o.Odd, Advice: askOperator})
			}
		}
	}
}

const askOperator = "Ask the operator of the gateway."

// oddities are of different kinds.
type oddities []oddity

// Stop reports whether buyers are not shown where to pay.
func (all oddities) Stop() bool {
	return slices.ContainsFunc(all, func(o oddity) bool { return o.Stops })
}

// add adds an oddity, unless its kind is known. One kind has all coins of a list.
func (all *oddities) add(odd oddity) {
	for i := range *all {
		if known := &(*all)[i]; known.What == odd.What {
			switch {
			case odd.First.ID != "" || slices.Contains(strings.Split(known.Seen, ", "), odd.Seen) || strings.HasSuffix(known.Seen, "…"):
			case len(known.Seen) > maxDetail:
				known.Seen += ", …"
			default:
				known.Seen += ", " + odd.Seen
			}
			return
		}
	}
	*all = append(*all, odd)
}

// showOdd shows the merchant what is odd.
func (s *shop) showOdd(w http.ResponseWriter, r *http.Request) error {
	all, err := s.oddities(r.Context())
	if err != nil {
		return err
	}
	return s.render(w, r, http.StatusOK, "odd", "What is odd", all)
}
