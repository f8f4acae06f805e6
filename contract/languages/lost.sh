#!/usr/bin/env bash
# lost ORDER: creates an invoice whose response is lost after it was committed, with
# curl, and finds exactly one invoice. The gateway is `gateway mock`.
set -euo pipefail
order=$1
mock=${GATEWAY_BASE_URL%/gateway}/_mock

json() { curl --silent --show-error --fail-with-body --header 'Content-Type: application/json' "$@"; }

json --data '{"operation": "create_invoice", "times": 1, "fault": "commit-then-drop"}' "$mock/faults"

# The key goes through stdin, because other users of a machine can read arguments.
body=$(printf '{"apiKey": "%s", "orderId": "%s", "price": "10.50", "amount": "10.50"}' "$GATEWAY_API_KEY" "$order")
if response=$(json --data @- "$GATEWAY_BASE_URL/api/invoice/create" <<<"$body" 2>/dev/null); then
  echo "there is a response: $response" >&2
  exit 1
fi

# No response: the invoice may exist or not. A gateway in use has to be asked by other
# means; the mock knows.
invoices=$(json "$mock/invoices?orderId=$order")
n=$(grep -o '"orderId":' <<<"$invoices" | wc -l)
[ "$n" = 1 ] || { echo "order $order has $n invoices: $invoices" >&2; exit 1; }
echo "curl: the response was lost, and order $order has one invoice"
