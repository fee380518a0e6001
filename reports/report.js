// Sorting, filtering, pages of rows, columns, copying and hovering. The page is complete without it.
(() => {
  "use strict";
  const table = document.getElementById("all");
  if (!table) return;
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  // a browser takes 0.7 ms to lay a row out, so thousands of them come a hundred at a time
  const PAGE = rows.length > 400 ? 100 : 400;
  const heads = Array.from(table.tHead.rows[0].cells);
  const names = heads.map((head) => head.textContent);
  const byId = (id) => document.getElementById(id);
  const number = (count) => count.toLocaleString("en");
  const said = (cell) => cell.textContent.replace(/\s+/g, " ").trim();

  // --- Which rows are shown: filtered, sorted, a page of them

  let ordered = rows;
  let matching = rows;
  let first = 0;
  let shown = rows;
  let words = [];
  const texts = new Map();
  const textOf = (row) => {
    let text = texts.get(row);
    if (text === undefined) texts.set(row, (text = row.textContent.toLowerCase()));
    return text;
  };
  const match = () => {
    matching = words.length ? ordered.filter((row) => words.every((word) => textOf(row).includes(word))) : ordered;
  };
  const put = (wanted) => {
    const kept = new Set(wanted);
    for (const row of shown) if (!kept.has(row)) row.hidden = true;
    const all = document.createDocumentFragment();
    for (const row of wanted) {
      row.hidden = false;
      all.append(row);
    }
    body.prepend(all);
    shown = wanted;
  };
  const pages = byId("pages");
  const [before, after, range] = ["before", "after", "range"].map(byId);
  const show = (start) => {
    first = start;
    put(matching.slice(first, first + PAGE));
    const last = Math.min(first + PAGE, matching.length);
    pages.hidden = matching.length <= PAGE;
    before.disabled = first === 0;
    after.disabled = last === matching.length;
    range.textContent = `rows ${number(first + 1)}–${number(last)} of ${number(matching.length)}`;
  };
  const turn = (start) => {
    show(start);
    table.parentElement.scrollTop = 0;
  };
  before.addEventListener("click", () => turn(first - PAGE));
  after.addEventListener("click", () => turn(first + PAGE));

  const filter = byId("filter");
  const count = byId("shown");
  const apply = () => {
    words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    match();
    show(0);
    const all = `${number(rows.length)} ${rows.length === 1 ? "case" : "cases"}`;
    count.textContent = words.length ? `${number(matching.length)} of ${all}` : all;
  };
  let waiting = 0;
  filter.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(apply, 30);
  });

  // A link to a row that the filter or the page hides shows it first; the browser then goes there.
  const reveal = (hash) => {
    const row = hash.startsWith("#r") ? byId(hash.slice(1)) : null;
    if (!row || row.parentElement !== body || !row.hidden) return null;
    if (!matching.includes(row)) {
      filter.value = "";
      apply();
    }
    show(Math.floor(matching.indexOf(row) / PAGE) * PAGE);
    return row;
  };
  const arrive = () => reveal(location.hash)?.scrollIntoView({ block: "center" });
  addEventListener("hashchange", arrive);
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#r']");
    if (link) reveal(link.getAttribute("href"));
  });
  // Paper has no pages of rows: it gets all that match.
  addEventListener("beforeprint", () => put(matching));
  addEventListener("afterprint", () => show(first));

  // --- Sorting

  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  const PREFIX = { n: 1e-9, "µ": 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15 };
  // "28.9 µs ±0.4 %" -> 28.9e-6; what is no number ("—", failed, INVALID) is null and sorts last
  const value = (text) => {
    const found = /^[~▲ ]*([0-9][0-9,]*\.?[0-9]*)\s*(?:([nµmkMGTP])(?=[sBF]))?/.exec(text);
    return found ? parseFloat(found[1].replace(/,/g, "")) * (PREFIX[found[2]] || 1) : null;
  };
  const key = (cell, numeric) => {
    const text = cell ? cell.textContent.trim() : "";
    return numeric ? value(text) : text === "" || text === "—" ? null : text;
  };
  const sort = (column) => {
    const head = heads[column];
    const next = { none: "ascending", ascending: "descending", descending: "none" }[head.getAttribute("aria-sort")];
    for (const each of heads) each.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", next);
    ordered = rows;
    if (next !== "none") {
      const numeric = head.classList.contains("number");
      const sign = next === "ascending" ? 1 : -1;
      ordered = rows
        .map((row) => [key(row.children[column], numeric), row])
        .sort(([left], [right]) => {
          if (left === null || right === null) return (left === null) - (right === null);
          return sign * (numeric ? left - right : collator.compare(left, right));
        })
        .map(([, row]) => row);
    }
    match();
    show(0);
  };
  const hints = new Map();
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(column));
    // a title shows under the pointer alone; the hint below shows under the focus too
    button.setAttribute("aria-description", head.title);
    hints.set(button, head.title);
    head.removeAttribute("title");
    head.setAttribute("aria-sort", "none");
    head.replaceChildren(button);
  });

  // --- Columns

  const menu = byId("columns");
  heads.forEach((head, column) => {
    if (column === 0) return; // the number by which charts call the row
    const label = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = true;
    box.addEventListener("change", () => {
      head.hidden = !box.checked;
      table.classList.toggle(`no${column + 1}`, !box.checked);
    });
    label.append(box, names[column]);
    menu.querySelector("fieldset").append(label);
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
  document.addEventListener("pointerdown", (event) => {
    if (!menu.contains(event.target)) menu.open = false;
  });

  // --- Copying

  const field = (text) => (/[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);
  // no spreadsheet may take a name for a formula
  const cell = (text) => field(/^[=+\-@\uff1d\uff0b\uff0d\uff20]/.test(text) ? `'${text}` : text);
  const csv = () => {
    const columns = heads.flatMap((head, column) => (head.hidden ? [] : [column]));
    const lines = matching.map((row) =>
      columns.map((column) => (row.children[column] ? cell(said(row.children[column])) : "")).join(","));
    lines.unshift(columns.map((column) => field(names[column])).join(","));
    return { text: `${lines.join("\r\n")}\r\n`, size: `${number(matching.length)} rows of ${columns.length} columns` };
  };
  const output = byId("copied");
  const area = byId("csv");
  byId("copy").addEventListener("click", async () => {
    const { text, size } = csv();
    try {
      await navigator.clipboard.writeText(text);
      area.hidden = true;
      output.textContent = `Copied ${size}.`;
    } catch {
      area.value = text;
      area.hidden = false;
      area.focus();
      area.select();
      output.textContent = `The clipboard is closed to this page: ${size} stand selected below, to be copied by hand.`;
    }
  });

  // --- Hovering: a mark and its row belong together, and a hint tells the numbers

  const hint = document.createElement("div");
  hint.id = "hint";
  hint.setAttribute("role", "tooltip");
  hint.hidden = true;
  document.body.append(hint);
  const marks = new Map();
  for (const mark of document.querySelectorAll(".paper a[href^='#r']")) {
    const title = mark.querySelector("title");
    const id = mark.getAttribute("href").slice(1);
    if (!marks.has(id)) marks.set(id, []);
    marks.get(id).push(mark);
    if (!title) continue;
    mark.setAttribute("aria-label", title.textContent);
    hints.set(mark, title.textContent);
    title.remove(); // the browser's own hint would cover ours
  }
  const TOLD = ["Time", "SOL@measured", "SOL@clock", "Limiter", "Regime", "Bytes/s", "FLOP/s", "Remarks"];
  const numbers = (row) => {
    const list = document.createElement("dl");
    for (const name of TOLD) {
      const column = names.indexOf(name);
      const text = column < 0 || !row.children[column] ? "" : said(row.children[column]);
      if (text === "" || text === "—") continue;
      const [term, data] = ["dt", "dd"].map((tag) => document.createElement(tag));
      term.textContent = name;
      data.textContent = text;
      list.append(term, data);
    }
    return list;
  };
  let lit = [];
  const light = (id) => {
    for (const each of lit) each.classList.remove("on");
    const row = id ? byId(id) : null;
    lit = row ? [row, ...(marks.get(id) || [])] : [];
    for (const each of lit) each.classList.add("on");
  };
  let told = null;
  const place = () => {
    if (!told) return;
    const [wide, high] = [document.documentElement.clientWidth, document.documentElement.clientHeight];
    const box = told.getBoundingClientRect();
    hint.hidden = box.bottom < 0 || box.top > high;
    const own = hint.getBoundingClientRect();
    const left = Math.min(Math.max(8, (box.left + box.right - own.width) / 2), Math.max(8, wide - own.width - 8));
    const above = box.top - own.height - 10;
    const top = above > 4 ? above : Math.min(box.bottom + 10, Math.max(4, high - own.height - 4));
    hint.style.left = `${Math.round(left)}px`;
    hint.style.top = `${Math.round(top)}px`;
  };
  const tell = (target) => {
    told = target && hints.has(target) ? target : null;
    hint.hidden = !told;
    if (!told) return;
    const words = document.createElement("p");
    words.textContent = hints.get(told);
    hint.replaceChildren(words);
    const row = told.matches("a") ? byId(told.getAttribute("href").slice(1)) : null;
    if (row) hint.append(numbers(row));
    place();
  };
  const follow = (event) => {
    const target = event.target.closest?.("a[href^='#r'], #all thead button, #all tbody tr");
    const id = target?.matches("a") ? target.getAttribute("href").slice(1) : target?.id;
    light(id);
    tell(target);
  };
  const leave = () => {
    light(null);
    tell(null);
  };
  document.addEventListener("pointerover", follow);
  document.addEventListener("focusin", follow);
  document.addEventListener("focusout", leave);
  document.documentElement.addEventListener("pointerleave", leave);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") leave();
  });
  addEventListener("scroll", place, { capture: true, passive: true });

  const tools = byId("tools");
  tools.addEventListener("submit", (event) => event.preventDefault());
  tools.hidden = false;
  if (rows.length > PAGE) show(0);
  arrive();
})();
