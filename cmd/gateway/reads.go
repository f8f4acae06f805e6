package main

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/shopspring/decimal"
	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway"
)

// reads makes do the action of a command with a client, within a time limit, and gives the command an output format.
func (s *session) reads(c *cobra.Command, limit time.Duration, do func(context.Context, *gateway.Client, []string) error) *cobra.Command {
	s.prints(c, formatTable, formatJSON)
	return s.runs(c, limit, func(ctx context.Context, args []string) error {
		client, err := s.client()
		if err != nil {
			return err
		}
		return do(ctx, client, args)
	})
}

func (s *session) coinsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "coins", Short: "List the coins on their networks, with fees and limits", Args: cobra.NoArgs,
		Long: `Lists the coins of the gateway on their networks. It needs no key. A field that the response
lacks is "-". Records that cannot be read are skipped, and reported on stderr.`,
		Example: `  gateway coins -o json`,
	}
	columns := []string{"COIN", "NETWORK", "MIN AMOUNT", "FEE", "MIN WITHDRAW", "MAX WITHDRAW", "DEPOSIT", "WITHDRAW", "CONFIRMATIONS", "ACTIVE"}
	return s.reads(c, time.Minute, func(ctx context.Context, client *gateway.Client, _ []string) error {
		var response gateway.Response
		pairs, err := client.CoinNetworks(ctx, gateway.WithResponse(&response))
		if err != nil {
			return err
		}
		s.tellSkipped(response.Skipped)
		return printList(s, pairs, columns, func(p gateway.CoinNetwork) []string {
			unlessMissing := func(name, text string) string {
				if slices.Contains(p.Missing, name) {
					return "-"
				}
				return text
			}
			return []string{
				p.Coin.Symbol, p.Network.Name, p.Coin.MinAmount.Normalize().String(), unlessMissing("withdrawalFee", p.WithdrawalFee.String()),
				unlessMissing("minWithdraw", p.MinWithdraw.String()), unlessMissing("maxWithdraw", p.MaxWithdraw.String()),
				yesNo(p.Depositable), yesNo(p.Withdrawable), unlessMissing("confirmation", strconv.Itoa(p.Confirmations)),
				yesNo(p.Coin.IsActive && p.Network.IsActive),
			}
		})
	})
}

func yesNo(flag bool) string {
	if flag {
		return "yes"
	}
	return "no"
}

func (s *session) ratesCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "rates", Short: "Print the price of one unit of each coin, in US dollars and euros", Args: cobra.NoArgs,
		Long: `Prints the price of one unit of each coin, in US dollars and euros. It needs no key. Records
that cannot be read are skipped, and reported on stderr.`,
		Example: `  gateway rates -o json`,
	}
	return s.reads(c, time.Minute, func(ctx context.Context, client *gateway.Client, _ []string) error {
		rates, err := client.ExchangeRates(ctx)
		if err != nil {
			return err
		}
		s.tellSkipped(rates.Skipped)
		return printList(s, rates.Rates, []string{"COIN", "USD", "EUR"}, func(r gateway.Rate) []string {
			return []string{r.CoinSymbol, price(r.USD), price(r.EUR)}
		})
	})
}

// price returns a rate as text; a coin can be without one.
func price(rate decimal.NullDecimal) string {
	if !rate.Valid {
		return "-"
	}
	return rate.Decimal.String()
}

func (s *session) balanceCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "balance", Short: "Print the account's balances", Args: cobra.NoArgs,
		Long: `Prints the balances of the account that the key belongs to: all of them, those of a coin,
those on a network, or the one of a coin on a network. It prints first, and then fails if
an amount of the response cannot be read.`,
		Example: `  gateway balance
  gateway balance --coin USDT --network Tron`,
	}
	var query gateway.BalanceQuery
	c.Flags().StringVar(&query.CoinSymbol, "coin", "", "the ticker `symbol` of a coin, such as USDT")
	c.Flags().StringVar(&query.NetworkName, "network", "", "the `name` of a network")
	return s.reads(c, time.Minute, func(ctx context.Context, client *gateway.Client, _ []string) error {
		balance, err := client.Balance(ctx, query)
		if err != nil {
			return err
		}
		s.tellSkipped(balance.Skipped)
		err = printList(s, balance.Amounts, []string{"COIN", "NETWORK", "AMOUNT"}, func(a gateway.BalanceAmount) []string {
			return []string{a.CoinSymbol, a.NetworkName, a.Amount.String()}
		})
		if len(balance.Skipped) > 0 {
			err = errors.Join(err, errors.New("the balance is incomplete: some amounts cannot be read"))
		}
		return err
	})
}

// tellSkipped says on stderr which records of a response the client skipped, and why.
func (s *session) tellSkipped(skipped []gateway.Skipped) {
	for _, each := range skipped {
		s.tell("skipped: %s %s: %s: %s", each.CoinSymbol, each.NetworkName, each.Pointer, each.Reason)
	}
}

func (s *session) withdrawalCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "withdrawal ID", Short: "Print a withdrawal, now or at its end", Args: cobra.ExactArgs(1),
		Long: `Prints the withdrawal with this identifier. With --wait it waits until the withdrawal is COMPLETED
or FAILED, and prints a line on stderr for each change. The exit code after a wait is 6 if the
withdrawal FAILED.`,
		Example: `  gateway withdrawal c0a8011e-8f2b-4f7a-9d0a-5f2f4b6f7e10
  gateway withdrawal c0a8011e-8f2b-4f7a-9d0a-5f2f4b6f7e10 --wait --timeout 1h -o json`,
	}
	wait := c.Flags().Bool("wait", false, "wait until the withdrawal is COMPLETED or FAILED")
	every := c.Flags().Duration("every", 2*time.Second, "the least `duration` between two inquiries of a wait; the most is ten times as long")
	return s.reads(c, 10*time.Minute, func(ctx context.Context, client *gateway.Client, args []string) error {
		if !*wait {
			w, err := client.Withdrawal(ctx, args[0])
			if err != nil {
				return err
			}
			return s.printFields(w)
		}
		var last *gateway.Withdrawal
		_, err := client.WaitWithdrawal(ctx, args[0], gateway.WaitOptions{
			MinInterval: *every, MaxInterval: 10 * *every,
			Changed: func(w *gateway.Withdrawal) {
				last = w
				s.tell("%s %s: %s", time.Now().UTC().Format(time.RFC3339), w.WithdrawRequestID, w.Status)
			},
		})
		if last != nil {
			err = errors.Join(err, s.printFields(last))
		}
		return err
	})
}
