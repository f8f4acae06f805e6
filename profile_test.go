package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

const profileJSON = `{"version":1,"successMessage":"OK","finalStatuses":["CANCELED"],` +
	`"rates":{"coin":"/from","currency":"/to","price":"/course"},` +
	`"balance":{"list":"/0/balance/merchant","coin":"/currency_code","amount":"/balance"}}`

func documentedProfile() gateway.Profile {
	return gateway.Profile{
		SuccessMessage: "OK", FinalStatuses: []gateway.WithdrawalStatus{"CANCELED"},
		Rates:   gateway.RatesForm{Coin: "/from", Currency: "/to", Price: "/course"},
		Balance: gateway.BalanceForm{List: "/0/balance/merchant", Coin: "/currency_code", Amount: "/balance"},
	}
}

func TestProfile_JSON(t *testing.T) {
	t.Parallel()
	var got gateway.Profile
	withRoutes := strings.Replace(profileJSON, `{"version"`, `{"routes":{"GET /api/balance/":[1,{}]},"version"`, 1)
	require.NoError(t, json.Unmarshal([]byte(withRoutes), &got))
	assert.Equal(t, documentedProfile(), got)
	text, err := json.Marshal(got)
	require.NoError(t, err)
	assert.Equal(t, profileJSON, string(text))
	text, err = json.Marshal(gateway.Profile{})
	require.NoError(t, err)
	assert.Equal(t, `{"version":1}`, string(text))
	for _, tt := range []struct{ name, text, reason string }{
		{"no version", `{"rates":{}}`, "/version is missing"},
		{"another version", `{"version":2}`, "the profile: /version is not 1"},
		{"a version as text", `{"version":"1"}`, "the profile: /version is text, not a number"},
		{"a name twice", `{"version":1,"a":1,"a":2}`, "the profile is not JSON, or has a name twice in an object"},
		{"a pointer that is no text", `{"version":1,"rates":{"coin":7}}`, "/rates/coin is a number, not text"},
		{"a status that is no text", `{"version":1,"finalStatuses":[null]}`, "/finalStatuses/0 is null, not text"},
		{"a form that is null", `{"version":1,"balance":null}`, "/balance is null, not an object"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			kept := documentedProfile()
			assert.ErrorContains(t, json.Unmarshal([]byte(tt.text), &kept), tt.reason)
			assert.Equal(t, documentedProfile(), kept)
		})
	}
}

func TestWithProfile_refuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		profile gateway.Profile
		reason  string
	}{
		{"a pointer without its slash", gateway.Profile{Rates: gateway.RatesForm{Coin: "from", USD: "/usd"}}, "rates.coin must be a JSON pointer"},
		{"a pointer with a tilde that is no escape", gateway.Profile{Balance: gateway.BalanceForm{Amount: "/a~2"}}, "balance.amount must be a JSON pointer"},
		{"a pointer over 1 KiB", gateway.Profile{Balance: gateway.BalanceForm{List: "/" + strings.Repeat("a", 1024), Amount: "/a"}}, "balance.list must be a JSON pointer"},
		{"a currency without a price", gateway.Profile{Rates: gateway.RatesForm{Coin: "/from", Currency: "/to"}}, "rates must have usd, eur or both; or currency and price"},
		{"prices in both ways", gateway.Profile{Rates: gateway.RatesForm{USD: "/usd", Currency: "/to", Price: "/course"}}, "rates must have usd"},
		{"rates without any price", gateway.Profile{Rates: gateway.RatesForm{List: "/rates"}}, "rates must have usd"},
		{"a balance without an amount", gateway.Profile{Balance: gateway.BalanceForm{Coin: "/coin"}}, "balance.amount is required"},
		{"PENDING as a final status", gateway.Profile{FinalStatuses: []gateway.WithdrawalStatus{"CANCELED", "PENDING"}}, "finalStatuses must not have PENDING"},
		{"an empty status", gateway.Profile{FinalStatuses: []gateway.WithdrawalStatus{""}}, "finalStatuses must not have PENDING or an empty one"},
		{"a message over 1 KiB", gateway.Profile{SuccessMessage: strings.Repeat("a", 1025)}, "successMessage must be at most 1,024 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := gateway.New("https://gateway.example", canary, gateway.WithProfile(tt.profile))
			assertRefused(t, err, "new", "WithProfile", tt.reason)
		})
	}
	_, err := gateway.New("https://gateway.example", canary, gateway.WithProfile(gateway.Profile{}), gateway.WithProfile(documentedProfile()))
	require.NoError(t, err)
}

// The message of a profile is one of a success, as that of WithSuccessMessage is.
func TestWithProfile_successMessage(t *testing.T) {
	t.Parallel()
	body := strings.Replace(enveloped(`{"address":"T"}`), "Operation was successful.", "OK", 1)
	order := subjectNamed("CreateInvoice")
	_, err := order.call(t.Context(), cannedClient(t, 200, body, gateway.WithProfile(documentedProfile())))
	require.NoError(t, err)
	_, err = order.call(t.Context(), cannedClient(t, 200, body, gateway.WithSuccessMessage("OK"), gateway.WithProfile(gateway.Profile{})))
	require.NoError(t, err, "a profile without a message leaves that of the option")
	_, err = order.call(t.Context(), cannedClient(t, 200, body, gateway.WithProfile(documentedProfile()), gateway.WithSuccessMessage("Done")))
	require.Error(t, err, "the last one wins")
}

func TestFromEnv_profile(t *testing.T) {
	order, body := subjectNamed("CreateInvoice"), strings.Replace(enveloped(`{"address":"T"}`), "Operation was successful.", "OK", 1)
	w := serve(t, respond(200, body))
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "profile.json")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	setenv(t, w.URL, canary, "")
	t.Setenv("GATEWAY_PROFILE", file(profileJSON))
	c, err := gateway.FromEnv()
	require.NoError(t, err)
	_, err = order.call(t.Context(), c)
	require.NoError(t, err)
	c, err = gateway.FromEnv(gateway.WithSuccessMessage("Done"))
	require.NoError(t, err)
	_, err = order.call(t.Context(), c)
	require.Error(t, err, "an option comes after the environment")
	for _, tt := range []struct{ name, file, reason string }{
		{"a file that is not there", filepath.Join(t.TempDir(), "none"), "the file cannot be read: no such file"},
		{"a directory", t.TempDir(), "the file cannot be read: it is not a regular file"},
		{"a file that is not JSON", file("OK"), "the profile is not JSON, or has a name twice in an object"},
		{"another version", file(`{"version":3}`), "/version is not 1"},
		{"a member of another kind", file(`{"version":1,"rates":{"list":[]}}`), "/rates/list is an array, not text"},
		{"a member that is no pointer", file(`{"version":1,"balance":{"amount":"balance"}}`), "balance.amount must be a JSON pointer"},
		{"a file over 4 MiB", file(strings.Repeat(" ", 4<<20) + `{"version":1}`), "the file has more than 4 MiB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("GATEWAY_PROFILE", tt.file)
			_, err := gateway.FromEnv()
			assertRefused(t, err, "new", "GATEWAY_PROFILE", tt.reason)
		})
	}
	for _, text := range []string{
		`%s`, `"%s"`, `{"%s":}`, `{"version":1,"%[1]s":1,"%[1]s":2}`, "{\"version\":1,\"%s\":\"\xff\"}", `{"version":"%s"}`, `{"version":1,"rates":{"list":"%s"}}`,
		`{"version":1,"successMessage":{"%s":1}}`, `{"version":1,"finalStatuses":["%s",null]}`, `{"version":1,"rates":{"coin":{"%s":1}}}`,
	} {
		t.Setenv("GATEWAY_PROFILE", file(fmt.Sprintf(text, "OTHER-SECRET-17")))
		_, err := gateway.FromEnv()
		require.Error(t, err, text)
		assert.NotContains(t, err.Error(), "OTHER", "no part of the file is shown")
	}
}

// What a profile says of the gateway is no drift.
func TestWithProfile_drift(t *testing.T) {
	t.Parallel()
	body := strings.Replace(enveloped(strings.Replace(withdrawalJSON, "PENDING", "CANCELED", 1)), "Operation was successful.", "OK", 1)
	for status, want := range map[gateway.WithdrawalStatus]int{"CANCELED": 0, "REJECTED": 1} {
		drift := 0
		c := cannedClient(t, 201, body, gateway.WithProfile(gateway.Profile{SuccessMessage: "OK", FinalStatuses: []gateway.WithdrawalStatus{status}}),
			gateway.WithObserver(gateway.Observer{Drift: func(context.Context, gateway.Drift) { drift++ }}))
		_, err := c.Withdrawal(t.Context(), requestID)
		require.NoError(t, err)
		assert.Equal(t, want, drift)
	}
}
