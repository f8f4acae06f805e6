"""lost ORDER: creates an invoice whose response is lost after it was committed, with
the standard library only, and finds exactly one invoice. The gateway is `gateway mock`.
"""

import http.client
import json
import os
import sys
import urllib.parse
import urllib.request

base_url, api_key = os.environ["GATEWAY_BASE_URL"], os.environ["GATEWAY_API_KEY"]
mock = base_url.removesuffix("/gateway") + "/_mock"


def call(url, body=None, method=None):
    """Sends a request, and returns the body of the response, which is JSON or nothing."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=30) as response:
        text = response.read()
        return json.loads(text) if text else None


def create_invoice(order):
    """Returns the response, or None if there is none: the invoice may exist then."""
    invoice = {"apiKey": api_key, "orderId": order, "price": "10.50", "amount": "10.50"}
    try:
        return call(base_url + "/api/invoice/create", invoice)
    except http.client.RemoteDisconnected:
        return None


def main(order):
    call(mock + "/faults", {"operation": "create_invoice", "times": 1, "fault": "commit-then-drop"})
    response = create_invoice(order)
    if response is not None:
        sys.exit(f"there is a response: {response}")
    invoices = call(mock + "/invoices?" + urllib.parse.urlencode({"orderId": order}))
    if len(invoices) != 1:
        sys.exit(f"order {order} has {len(invoices)} invoices: {invoices}")

    # The gateway of this merchant returns the first invoice of a repeated order.
    call(mock + "/settings", {"repeatedOrders": "same", "shapes": ["invoice/payable"], "latency": "1ms-2ms"}, "PATCH")
    again = create_invoice(order)["result"]
    if again["id"] != invoices[0]["id"] or not again["address"]:
        sys.exit(f"the repeat has another invoice: {again}")
    call(mock + "/settings", {"repeatedOrders": "again", "shapes": ["invoice/flat"], "latency": "0s"}, "PATCH")

    # The data can be read, changed and restored; a fault for a share of the requests is listed.
    state = call(mock + "/state")
    call(mock + "/state", {"rates": [{"symbol": "ABC", "usd": "2"}]}, "PATCH")
    rates = call(base_url + "/api/exchange-rate")["result"]
    if rates != [{"symbol": "ABC", "usd": "2"}]:
        sys.exit(f"other rates: {rates}")
    call(mock + "/state", {"rates": state["rates"]}, "PATCH")
    call(mock + "/faults", {"operation": "balance", "share": "5%", "fault": "refuse=503"})
    queued = call(mock + "/faults")
    if queued != [{"operation": "balance", "share": "5%", "fault": "refuse=503"}]:
        sys.exit(f"other faults are queued: {queued}")
    call(mock + "/faults", method="DELETE")
    print(f"Python: the response was lost, and order {order} has one invoice")


main(sys.argv[1])
