"use strict";
const root = document.documentElement;
const metric = document.getElementById("metric");
const number = (text) => { const n = parseFloat(text.replace(/,/g, "")); return Number.isNaN(n) ? null : n; };

for (const heading of document.querySelectorAll(".sortable th")) {
  heading.tabIndex = 0;
  const sort = () => {
    const table = heading.closest("table"), body = table.tBodies[0], column = heading.cellIndex;
    const down = heading.getAttribute("aria-sort") !== "descending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (row) => row.cells[column].textContent.trim();
    const order = (a, b) => {
      const x = number(key(a)), y = number(key(b));
      const n = x !== null && y !== null ? x - y : x !== null ? 1 : y !== null ? -1 : key(a).localeCompare(key(b));
      return down ? -n : n;
    };
    body.append(...[...body.rows].sort(order));
  };
  heading.addEventListener("click", sort);
  heading.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
}

let current = -1;
const hot = () => {
  const rows = [...document.querySelectorAll(".source tbody tr")];
  const heat = (row) => Number(row.querySelectorAll(".heat")[metric.selectedIndex].dataset.count);
  return rows.filter((row) => heat(row) > 0).sort((a, b) => heat(b) - heat(a));
};
const step = (by) => {
  const rows = hot();
  if (!rows.length) return;
  current = (current + by + rows.length) % rows.length;
  document.querySelector("tr.current")?.classList.remove("current");
  rows[current].classList.add("current");
  rows[current].scrollIntoView({ block: "center" });
};
metric.addEventListener("change", () => { current = -1; metric.blur(); });
document.addEventListener("keydown", (event) => {
  if (event.target.tagName === "SELECT" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "n") step(1);
  if (event.key === "p") step(-1);
  if (event.key === "t") {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  }
});
