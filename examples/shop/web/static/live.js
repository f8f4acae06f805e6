// Live numbers. Every page works without this.
"use strict";

for (const part of document.querySelectorAll("[data-live]")) follow(part.dataset.live);

// Only a page that is seen is live: a browser has few connections to a host,
// and other tabs need them.
function follow(address) {
  let events;
  let ended = false;
  const look = () => {
    events?.close();
    if (document.hidden || ended) return;
    events = new EventSource(address);
    events.addEventListener("quote", (event) => showQuote(JSON.parse(event.data)));
    events.addEventListener("withdrawal", (event) => showWithdrawal(JSON.parse(event.data)));
    events.addEventListener("end", () => {
      ended = true;
      events.close();
    });
  };
  document.addEventListener("visibilitychange", look);
  addEventListener("pagehide", () => events?.close());
  look();
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
  if (!withdrawal.amount) return; // it is not known just now
  row.cells[1].textContent = withdrawal.amount;
  row.cells[2].textContent = withdrawal.destination;
}
