// What a program may write with the types that openapi-typescript makes of the document.
// It is compiled and not run: in the line after "@ts-expect-error" there must be an
// error, and in no other line.
import type { operations } from "./gateway";

type Body<T> = T extends { content: { "application/json": infer B } } ? B : never;
type Success<O extends { responses: { "2XX": unknown } }> = Body<O["responses"]["2XX"]>;
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
declare function holds<_ extends true>(): void;

// Requests.
declare function create(invoice: Body<operations["createInvoice"]["requestBody"]>): void;
const order = { orderId: "order-17", price: "10.50", amount: "10.50" };
create({ ...order, apiKey: "k" });
create({ ...order, apikey: "k", price: 10.5, amount: 10.5 });
create({ ...order, apiKey: "k", baseCurrency: "usd", coinSymbol: "USDT", networkName: "Tron" });
// @ts-expect-error: no key
create(order);
// @ts-expect-error: no order
create({ apiKey: "k", price: "10.50", amount: "10.50" });
// @ts-expect-error: an order that is a number
create({ ...order, apiKey: "k", orderId: 17 });
// @ts-expect-error: a price that is neither text nor a number
create({ ...order, apiKey: "k", price: true });
// @ts-expect-error: an amount that is null
create({ ...order, apiKey: "k", amount: null });
// @ts-expect-error: a member that is not listed
create({ ...order, apiKey: "k", coin: "USDT" });

declare function balance(query: operations["getBalance"]["parameters"]["query"]): void;
balance({ coinSymbol: "USDT", networkName: "Tron" });
balance({});
// @ts-expect-error: a parameter that is not listed
balance({ coin: "USDT" });
holds<Same<operations["getCoinNetwork"]["parameters"]["path"], { id: string }>>();
holds<Same<operations["getCoinNetworkBySymbol"]["parameters"]["path"], { coinSymbol: string; networkName: string }>>();
holds<Same<operations["getWithdrawal"]["parameters"]["path"], { withdrawRequestId: string }>>();

// The two successes that are documented.
const envelope = { message: "Operation was successful.", meta: {} } as const;

declare function inquired(inquiry: Body<operations["getWithdrawal"]["responses"][201]>): void;
type Withdrawal = Body<operations["getWithdrawal"]["responses"][201]>["result"];
holds<Same<Withdrawal["status"], "PENDING" | "FAILED" | "COMPLETED">>();
const { status, ...rest }: Withdrawal = {
  status: "PENDING", destination: "d", amount: "1", fee: "1", coin: "USDT", network: "Tron", withdrawRequestId: "w",
};
inquired({ ...envelope, result: { ...rest, status } });
// @ts-expect-error: no result
inquired(envelope);
// @ts-expect-error: no status
inquired({ ...envelope, result: rest });
// @ts-expect-error: a status that is not documented
inquired({ ...envelope, result: { ...rest, status: "DONE" } });
// @ts-expect-error: an amount that is a number
inquired({ ...envelope, result: { ...rest, status, amount: 1 } });
// @ts-expect-error: another message
inquired({ ...envelope, message: "OK", result: { ...rest, status } });

declare function listed(listing: Success<operations["listCoinNetworks"]>): void;
declare const pair: Success<operations["listCoinNetworks"]>["result"][number];
holds<Same<[typeof pair.maxWithdraw, typeof pair.withdrawable, typeof pair.coin.precision], [string, boolean, number]>>();
listed({ ...envelope, result: [pair] });
// @ts-expect-error: no result
listed(envelope);
// @ts-expect-error: a record and no array
listed({ ...envelope, result: pair });
// @ts-expect-error: a fee that is a number
listed({ ...envelope, result: [{ ...pair, withdrawalFee: 1.5 }] });
// @ts-expect-error: a network that is a name
listed({ ...envelope, result: [{ ...pair, network: "Tron" }] });

// The other successes are not shown.
type NotShown = "getCoinNetwork" | "getCoinNetworkBySymbol" | "getExchangeRates" | "getBalance" | "createInvoice";
holds<Same<{ [O in NotShown]: Success<operations[O]> }, Record<NotShown, unknown>>>();

// Every operation has the same error.
declare function failed<O extends keyof operations>(error: Body<operations[O]["responses"]["default"]>): void;
holds<Same<keyof operations, NotShown | "listCoinNetworks" | "getWithdrawal">>();
const failure = { message: "x-api-key header is required", result: [], meta: {} };
failed<keyof operations>(failure);
// @ts-expect-error: no message
failed({ result: [], meta: {} });
// @ts-expect-error: a result that is an object
failed({ ...failure, result: {} });
// @ts-expect-error: a meta that is not empty
failed({ ...failure, meta: { a: 1 } });
