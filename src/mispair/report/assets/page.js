"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const make = (name, className, ...children) => {
    const element = document.createElement(name);
    if (className) element.className = className;
    element.append(...children.filter((child) => child !== null && child !== ""));
    return element;
  };

  /* light and dark */
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = byId("theme");
  const remembered = () => { try { return localStorage.getItem("mispair-theme"); } catch { return null; } };
  const isDark = () => (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  const label = () => { button.textContent = isDark() ? "light" : "dark"; };
  if (["light", "dark"].includes(remembered())) root.dataset.theme = remembered();
  button.hidden = false;
  label();
  system.addEventListener("change", label);
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("mispair-theme", root.dataset.theme); } catch { /* some browsers forbid it to files */ }
    label();
  });

  /* what is folded on the screen is open on paper */
  const opened = [];
  addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll("details:not([open])")) { fold.open = true; opened.push(fold); }
  });
  addEventListener("afterprint", () => { while (opened.length) opened.pop().open = false; });

  /* the worst pairs */
  const island = byId("pairs-data");
  if (!island) return;
  const { columns, texts, pictures } = JSON.parse(island.textContent);
  const size = 25;
  const count = columns.p.length;
  const value = (key, row) => (columns[key] ? columns[key][row] : null);
  const text = (key, row) => { const at = value(key, row); return at === null ? null : texts[at]; };
  const lower = texts.map((one) => one.toLowerCase());
  const view = byId("pairs-view");
  const body = view.querySelector("tbody");
  const headings = [...view.querySelectorAll("th button")];
  const keys = headings.map((heading) => heading.dataset.key);
  const digits = Object.fromEntries(headings.map((heading) => [heading.dataset.key, heading.dataset.digits]));
  const collator = new Intl.Collator(undefined, { numeric: true });
  let order = [...Array(count).keys()];
  let rows = order;
  let page = 0;

  const kinds = {
    all: () => true,
    flagged: (row) => value("f", row) === 1,
    kept: (row) => value("f", row) === 0,
    proposed: (row) => value("q", row) !== null,
    swap: (row) => value("x", row) !== null,
    wrong: (row) => value("y", row) !== null && value("y", row) !== value("f", row),
  };

  const number = (amount, places) =>
    amount === null ? "" : amount.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places });
  const isolated = (content, className) => make("bdi", className, content);
  const picture = (at) => {
    if (at === null || !(at in pictures)) return null;
    if (!pictures[at]) return make("span", "tile", "no picture");
    const image = make("img", "tile");
    image.src = pictures[at];
    image.alt = texts[at];
    return image;
  };

  const cell = (key, row) => {
    if (digits[key] !== undefined) return make("td", `col-${key}`, number(value(key, row), digits[key]));
    const said = text(key, row);
    const shown = said === null ? null : isolated(said, "cut");
    return make("td", `col-${key}`, key === "i" ? picture(value("i", row)) : null, shown);
  };

  const fact = (name, ...content) => make("div", "", make("dt", "", name), make("dd", "", ...content));
  const details = (row) => {
    const list = make("dl", "facts");
    const say = (name, key) => { if (text(key, row) !== null) list.append(fact(name, isolated(text(key, row)))); };
    const shown = picture(value("i", row));
    if (shown) list.append(fact("picture", shown));
    say("pair", "id");
    say("image", "i");
    say("given caption", "c");
    list.append(fact("p mismatch", number(value("p", row), 3)));
    if (value("s", row) !== null) list.append(fact("score", number(value("s", row), 3)));
    const ranks = [["r", "of the caption for its image"], ["t", "of the image for its caption"]];
    const said = ranks.filter(([key]) => value(key, row) !== null).map(([key, what]) => `${number(value(key, row), 0)} ${what}`);
    if (said.length) list.append(fact("rank", said.join(", ")));
    say("proposed caption", "q");
    if (value("w", row) !== null) {
      const gain = value("g", row) === null ? "" : `, gain ${number(value("g", row), 2)} over the given one`;
      list.append(fact("weight", number(value("w", row), 2) + gain));
    }
    say("the caption scores better with", "o");
    const other = picture(value("o", row));
    if (other) list.append(fact("", other));
    say("exchange with pair", "x");
    if (value("y", row) !== null) list.append(fact("truth", value("y", row) ? "mismatched" : "matched"));
    const wide = make("td", "", list);
    wide.colSpan = keys.length;
    return make("tr", "detail", wide);
  };

  const toggle = (line) => {
    const next = line.nextElementSibling;
    const isOpen = next !== null && next.classList.contains("detail");
    if (isOpen) next.remove();
    else line.after(details(Number(line.dataset.row)));
    line.setAttribute("aria-expanded", String(!isOpen));
  };

  const draw = () => {
    const last = Math.max(1, Math.ceil(rows.length / size));
    page = Math.min(Math.max(page, 0), last - 1);
    body.replaceChildren(...rows.slice(page * size, (page + 1) * size).map((row, place) => {
      const line = make("tr", value("f", row) ? "flagged" : "", ...keys.map((key) => cell(key, row)));
      line.dataset.row = row;
      line.tabIndex = place ? -1 : 0;
      line.setAttribute("aria-expanded", "false");
      return line;
    }));
    byId("found").textContent = `${rows.length.toLocaleString("en")} of ${count.toLocaleString("en")}`;
    byId("pager").hidden = rows.length <= size;
    byId("page-at").textContent = `${page + 1} of ${last}`;
    byId("page-back").disabled = page === 0;
    byId("page-on").disabled = page === last - 1;
  };

  const filter = () => {
    const wanted = byId("find").value.trim().toLowerCase();
    const kind = kinds[byId("show").value];
    const hits = wanted === "" ? null : lower.map((one) => one.includes(wanted));
    const found = (row) => hits === null || ["id", "i", "c", "q"].some((key) => { const at = value(key, row); return at !== null && hits[at]; });
    rows = order.filter((row) => kind(row) && found(row));
    page = 0;
    draw();
  };

  const sort = (heading) => {
    const head = heading.closest("th");
    const key = heading.dataset.key;
    const first = heading.dataset.down !== undefined ? "descending" : "ascending";
    const second = heading.dataset.down !== undefined ? "ascending" : "descending";
    const way = head.getAttribute("aria-sort") === first ? second : first;
    for (const other of headings) other.closest("th").removeAttribute("aria-sort");
    head.setAttribute("aria-sort", way);
    const sign = way === "ascending" ? 1 : -1;
    const compare = digits[key] === undefined
      ? (a, b) => collator.compare(text(key, a), text(key, b))
      : (a, b) => value(key, a) - value(key, b);
    const known = [];
    const unknown = [];
    for (let row = 0; row < count; row += 1) (value(key, row) === null ? unknown : known).push(row);
    order = known.sort((a, b) => sign * compare(a, b) || a - b).concat(unknown);
    filter();
  };

  const step = (line, direction) => {
    let next = line;
    do next = direction > 0 ? next.nextElementSibling : next.previousElementSibling;
    while (next !== null && next.classList.contains("detail"));
    if (next === null) return;
    line.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  };

  for (const heading of headings) heading.addEventListener("click", () => sort(heading));
  byId("find").addEventListener("input", filter);
  byId("show").addEventListener("change", filter);
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  byId("page-back").addEventListener("click", () => { page -= 1; draw(); });
  byId("page-on").addEventListener("click", () => { page += 1; draw(); });
  body.addEventListener("click", (event) => {
    const line = event.target.closest("tr");
    if (line && line.dataset.row !== undefined && !String(getSelection())) toggle(line);
  });
  body.addEventListener("keydown", (event) => {
    const line = event.target.closest("tr");
    if (!line || line.dataset.row === undefined || event.target !== line) return;
    const isOpen = line.getAttribute("aria-expanded") === "true";
    if (event.key === "Enter" || event.key === " ") toggle(line);
    else if (event.key === "Escape" && isOpen) toggle(line);
    else if (event.key === "ArrowDown") step(line, 1);
    else if (event.key === "ArrowUp") step(line, -1);
    else return;
    event.preventDefault();
  });
  addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName || "");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      byId("find").focus();
    } else if (event.key === "Escape" && event.target === byId("find")) {
      byId("find").value = "";
      filter();
    }
  });

  byId("controls").hidden = false;
  byId("keys").hidden = false;
  draw();
})();
