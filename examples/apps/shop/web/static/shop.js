// Local times, copy buttons, and pages that load again when their order changes. Every page
// works without this script.
"use strict";

const main = document.getElementById("main");
for (const element of main.querySelectorAll("time")) {
  const at = new Date(element.dateTime);
  if (!isNaN(at)) element.textContent = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

// A visible page whose heading has a view asks for itself every few seconds, and loads again when the
// view is another one.
const viewOf = (page) => page.querySelector("h1")?.dataset.view;
let failures = 0;
async function update() {
  if (document.hidden) return;
  try {
    const response = await fetch(location.pathname, { headers: { Accept: "text/html" } });
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    if (!response.ok && !viewOf(fresh)) throw new Error("status " + response.status); // an order that was refused has a view
    if (viewOf(fresh) !== viewOf(main)) return location.replace(location.pathname);
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
