// Sorting and filtering of the table of every case. The page is complete without it.
(() => {
  "use strict";
  const table = document.getElementById("all");
  if (!table) return;
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const heads = Array.from(table.tHead.rows[0].cells);
  const words = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  const PREFIX = { n: 1e-9, "µ": 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15 };

  // "28.9 µs ±0.4 %" -> 28.9e-6; what is no number ("—", failed, INVALID) is null and sorts last
  const value = (text) => {
    const found = /^[~▲ ]*([0-9][0-9,]*\.?[0-9]*)\s*(?:([nµmkMGTP])(?=[sBF]))?/.exec(text);
    return found ? parseFloat(found[1].replace(/,/g, "")) * (PREFIX[found[2]] || 1) : null;
  };
  const keys = (column, number) =>
    new Map(rows.map((row) => {
      const text = row.cells[column] ? row.cells[column].textContent.trim() : "";
      return [row, number ? value(text) : text === "" || text === "—" ? null : text];
    }));

  const sort = (column) => {
    const head = heads[column];
    const next = { none: "ascending", ascending: "descending", descending: "none" }[head.getAttribute("aria-sort") || "none"];
    heads.forEach((each) => each.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", next);
    let ordered = rows;
    if (next !== "none") {
      const number = head.classList.contains("number");
      const key = keys(column, number);
      const sign = next === "ascending" ? 1 : -1;
      ordered = rows.slice().sort((one, other) => {
        const [left, right] = [key.get(one), key.get(other)];
        if (left === null || right === null) return (left === null) - (right === null);
        return sign * (number ? left - right : words.compare(left, right));
      });
    }
    const all = document.createDocumentFragment();
    ordered.forEach((row) => all.append(row));
    body.append(all);
  };

  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(column));
    head.setAttribute("aria-sort", "none");
    head.replaceChildren(button);
  });

  const tools = document.getElementById("tools");
  const filter = document.getElementById("filter");
  const shown = document.getElementById("shown");
  const texts = new Map();
  const total = rows.length.toLocaleString("en");
  const apply = () => {
    const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      if (!texts.has(row)) texts.set(row, Array.from(row.cells, (cell) => cell.textContent).join(" ").toLowerCase());
      const text = texts.get(row);
      row.hidden = !wanted.every((word) => text.includes(word));
      if (!row.hidden) count += 1;
    }
    shown.textContent = wanted.length ? `${count.toLocaleString("en")} of ${total} cases` : `${total} cases`;
  };
  let waiting = 0;
  filter.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(apply, 80);
  });
  tools.addEventListener("submit", (event) => event.preventDefault());
  tools.hidden = false;

  // A link into a row that the filter hides shows it again.
  const reveal = () => {
    const row = document.getElementById(location.hash.slice(1));
    if (row && row.hidden) {
      filter.value = "";
      apply();
      row.scrollIntoView({ block: "center" });
    }
  };
  addEventListener("hashchange", reveal);
})();
