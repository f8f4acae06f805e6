// Local times, copy buttons, a countdown, and pages that update themselves. Every page
// works without this script.
"use strict";

const main = document.getElementById("main");
const shown = new WeakMap(); // what the server sent for a live element, before localize
for (const element of main.querySelectorAll("[data-live]")) shown.set(element, element.innerHTML);
localize(main);

function localize(root) {
  for (const element of root.querySelectorAll("time")) {
    const at = new Date(element.dateTime);
    if (!isNaN(at)) element.textContent = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  }
}

// A visible page whose heading has a view asks for itself every few seconds: it takes over the live
// elements, and loads again when the view is another one.
const viewOf = (page) => page.querySelector("h1")?.dataset.view;
let failures = 0;
async function update() {
  if (document.hidden) return;
  try {
    const response = await fetch(location.pathname, { headers: { Accept: "text/html" } });
    if (!response.ok) throw new Error("status " + response.status);
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    if (viewOf(fresh) !== viewOf(main)) return location.replace(location.pathname);
    for (const element of main.querySelectorAll("[data-live]")) {
      const other = fresh.getElementById(element.id);
      if (!other) continue;
      if ("disabled" in element) element.disabled = other.disabled;
      if (shown.get(element) === other.innerHTML) continue;
      shown.set(element, other.innerHTML);
      element.replaceChildren(...other.childNodes);
      localize(element);
    }
    failures = 0;
  } catch {
    failures++; // the page stays as it is, and asks less often
  }
}
if (viewOf(main)) {
  const next = () => setTimeout(() => update().finally(next), 2000 * 2 ** Math.min(failures, 4));
  next();
  document.addEventListener("visibilitychange", update);
}

for (const button of main.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const status = document.getElementById("copied");
    try {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      status.textContent = button.textContent.replace("Copy the", "Copied the") + ".";
    } catch {
      status.textContent = "Your browser does not allow copying. Please select the text.";
    }
  });
}

for (const element of main.querySelectorAll("[data-until]")) {
  const until = new Date(element.dataset.until);
  const tick = () => {
    const seconds = Math.max(0, Math.round((until - Date.now()) / 1000));
    const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
    element.textContent = ": " + parts.map((n) => String(n).padStart(2, "0")).join(":") + " left";
    if (seconds === 0) return setTimeout(() => location.reload(), 2000);
    setTimeout(tick, 1000);
  };
  tick();
}
