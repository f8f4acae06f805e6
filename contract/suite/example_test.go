package suite_test

import (
	"context"
	"fmt"
	"time"

	"github.com/cryptogw/gateway/contract/suite"
	"github.com/cryptogw/gateway/gatewaytest"
)

// Outside of a test the cases are run one by one. A test calls suite.Run.
func ExampleCases() {
	gw := gatewaytest.NewMemoryServer()
	defer gw.Close()
	target := suite.Target{BaseURL: gw.URL, APIKey: gw.APIKey, Transport: gw.Transport()}
	gw.InjectFault(gatewaytest.OpExchangeRates, -1, gatewaytest.FaultRefuse(400, "closed today"))

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, c := range suite.Cases() {
		if !c.Applies(target) {
			fmt.Println("does not apply:", c.Name)
		} else if err := c.Check(ctx, target); err != nil {
			fmt.Printf("%s: %s: %v\n", c.Where, c.Name, err)
		}
	}

	// Output:
	// I-94: the exchange rates cover every active coin: gateway: exchange_rates: 400: "closed today"
	// does not apply: a withdrawal inquiry takes the key in a header, whose name is case-insensitive
	// does not apply: a withdrawal inquiry returns status 201 with all its fields
	// does not apply: an invoice is created in the format of the sample: apiKey, and decimals in strings
	// does not apply: an invoice is created in the format of the table: apikey, and numbers
	// does not apply: an invoice needs no currency, coin or network
	// does not apply: an invoice without a required field is refused
}
