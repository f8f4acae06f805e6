// Live numbers. Every page works without this.
"use strict";

for (const part of document.querySelectorAll("[data-live]")) {
  const events = new EventSource(part.dataset.live);
  events.addEventListener("quote", (event) => showQuote(JSON.parse(event.data)));
  events.addEventListener("withdrawal", (event) => showWithdrawal(JSON.parse(event.data)));
  events.addEventListener("end", () => events.close());
  addEventListener("pagehide", () => events.close());
}

function showQuote(quote) {
  const age = document.getElementById("age");
  age.textContent = quote.age;
  age.classList.toggle("stale", quote.stale);
  for (const offer of quote.offers ?? []) {
    const label = document.querySelector(`[data-offer="${CSS.escape(offer.id)}"]`);
    if (!label) continue;
    label.querySelector(".amount").textContent = offer.amount;
    label.querySelector(".problem").textContent = offer.problem;
    label.querySelector("input").disabled = offer.problem !== "";
  }
}

function showWithdrawal(withdrawal) {
  const row = document.querySelector(`[data-withdrawal="${CSS.escape(withdrawal.id)}"]`);
  if (!row) return;
  const state = row.querySelector(".state");
  state.textContent = withdrawal.status;
  state.className = `state ${withdrawal.status}`;
}
