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


def call(url, body=None):
    """Sends a request, and returns the body of the response, which is JSON or nothing."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
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
    print(f"Python: the response was lost, and order {order} has one invoice")


main(sys.argv[1])
