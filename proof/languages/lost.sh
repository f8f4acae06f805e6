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

# The gateway of this merchant returns the first invoice of a repeated order.
set_repeated() { curl -sS --fail-with-body -X PATCH -d "{\"repeatedOrders\": \"$1\"}" "$mock/settings" >/dev/null; }
set_repeated same
again=$(json --data @- "$GATEWAY_BASE_URL/api/invoice/create" <<<"$body")
set_repeated again
id=$(grep -o '"id":"[^"]*"' <<<"$invoices")
grep -qF "$id" <<<"$again" || { echo "the repeat has another invoice: $again" >&2; exit 1; }

# An order asks for a fault by itself, and no test has left one in the queue.
if json --data @- "$GATEWAY_BASE_URL/api/invoice/create" <<<"${body/"$order"/mock-refuse=503-$order}" >/dev/null 2>&1; then
  echo "order mock-refuse=503-$order is not refused" >&2
  exit 1
fi
[ "$(curl -sS "$mock/faults")" = '[]' ] || { echo 'a fault is queued' >&2; exit 1; }
echo "curl: the response was lost, and order $order has one invoice"
