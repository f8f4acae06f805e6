package fields_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/testing/documented/fields"
)

// The statements of a record's fields are listed for it in docs/interface.md, in the same order.
func TestTables(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../../../docs/interface.md")
	require.NoError(t, err)
	of := map[string][]string{}
	for _, line := range regexp.MustCompile(`(?m)^- (.*) \(\*documented\*; `+"`(\\w+)`"+`\): its fields`).FindAllSubmatch(document, -1) {
		for _, list := range regexp.MustCompile(`\*\*I-(\d+)\*\* to \*\*I-(\d+)\*\*`).FindAllSubmatch(line[1], -1) {
			from, _ := strconv.Atoi(string(list[1]))
			to, _ := strconv.Atoi(string(list[2]))
			for number := from; number <= to; number++ {
				of[string(line[2])] = append(of[string(line[2])], fmt.Sprint("I-", number))
			}
		}
	}
	for name, table := range map[string]*fields.Table{"CoinNetwork": fields.Pair, "Network": fields.Network, "Coin": fields.Coin, "Withdrawal": fields.Withdrawal} {
		var statements []string
		for _, f := range table.Fields {
			statements = append(statements, f.Statement)
		}
		assert.Equal(t, of[name], statements, name)
	}
}
