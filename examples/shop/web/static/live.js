// Live updates. Every page works without this script.
"use strict";

for (const element of document.querySelectorAll("[data-live]")) openLive(element.dataset.live);

// Only a visible page is live: a browser allows few connections to a host,
// and other tabs need them.
function openLive(address) {
  let events;
  let ended = false;
  const connect = () => {
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
  document.addEventListener("visibilitychange", connect);
  addEventListener("pagehide", () => events?.close());
  connect();
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
  if (!withdrawal.amount) return; // not available at the moment
  row.cells[1].textContent = withdrawal.amount;
  row.cells[2].textContent = withdrawal.destination;
}
