// lost ORDER: creates an invoice whose response is lost after it was committed, with the
// types that openapi-typescript makes of api/openapi.yaml and api/mock.yaml, and finds
// exactly one invoice. The gateway is `gateway mock`.
import type { operations as Gateway } from "./gateway.d.ts";
import type { components, operations as Mock } from "./mock.d.ts";

declare const process: { argv: string[]; env: Record<string, string>; exitCode: number };

type Body<T> = T extends { content: { "application/json": infer B } } ? B : never;
type InvoiceRequest = Body<Gateway["createInvoice"]["requestBody"]>;
type Invoices = Body<Mock["listInvoices"]["responses"][200]>;

// The types refuse what the service refuses: without an error in the line below, tsc fails.
// @ts-expect-error: an invoice has a key
void ({ orderId: "o", price: "1", amount: "1" } satisfies InvoiceRequest);

const baseURL = process.env.GATEWAY_BASE_URL!;
const mock = baseURL.replace(/\/gateway$/, "/_mock");

// post sends JSON. It throws a TypeError if there is no response.
function post(url: string, body: unknown): Promise<Response> {
  return fetch(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
}

// createInvoice returns the response, or undefined if there is none: the invoice may
// exist then.
async function createInvoice(invoice: InvoiceRequest): Promise<string | undefined> {
  try {
    return await (await post(baseURL + "/api/invoice/create", invoice)).text();
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

// set changes settings of the mock. The types know their values.
async function set(settings: components["schemas"]["Settings"]): Promise<void> {
  const done = await fetch(mock + "/settings", { method: "PATCH", headers: { "Content-Type": "application/json" }, body: JSON.stringify(settings) });
  if (!done.ok) throw new Error(await done.text());
}

async function main(order: string): Promise<string> {
  const fault: components["schemas"]["Injection"] = { operation: "create_invoice", times: 1, fault: "commit-then-drop" };
  const injected = await post(mock + "/faults", fault);
  if (!injected.ok) throw new Error(await injected.text());

  const invoice = { apiKey: process.env.GATEWAY_API_KEY!, orderId: order, price: "10.50", amount: "10.50" };
  const response = await createInvoice(invoice);
  if (response !== undefined) throw new Error("there is a response: " + response);

  const found: Invoices = await (await fetch(`${mock}/invoices?orderId=${encodeURIComponent(order)}`)).json();
  if (found.length !== 1) throw new Error(`order ${order} has ${found.length} invoices: ${found.map((i) => i.id)}`);

  // The gateway of this merchant returns the first invoice of a repeated order.
  await set({ repeatedOrders: "same" });
  const again = await createInvoice(invoice);
  if (!again?.includes(found[0].id)) throw new Error("the repeat has another invoice: " + again);
  await set({ repeatedOrders: "again" });

  const queued: components["schemas"]["Injection"][] = await (await fetch(mock + "/faults")).json();
  if (queued.length !== 0) throw new Error("a fault is queued: " + JSON.stringify(queued));
  return `TypeScript: the response was lost, and order ${found[0].orderId} has one invoice`;
}

try {
  console.log(await main(process.argv[2]));
} catch (error) {
  console.error(String(error));
  process.exitCode = 1;
}
