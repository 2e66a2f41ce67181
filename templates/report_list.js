// The list of matches, the page around it, and what it tells of itself.
// --- the list ---------------------------------------------------------------------------------

const LINE = 32;
const rows = byId("rows"), body = byId("body");
const cells = matches.columns;
let texts = null;
function searched(match) {
  texts ||= new Array(shownMatches);
  texts[match] ??= cells.map((column) => text(column, match)).join(" \u0000").toLowerCase();
  return texts[match];
}
function order() {
  const words = state.filter.toLowerCase().split(/\s+/).filter(Boolean);
  let found = Array.from({ length: shownMatches }, (_, n) => n);
  if (words.length) found = found.filter((n) => words.every((word) => searched(n).includes(word)));
  if (state.sort) {
    const { column, down } = state.sort;
    const keys = new Map(found.map((n) => [n, sortKey(cells[column], n)]));
    found.sort((a, b) => {
      const [one, other] = [keys.get(a), keys.get(b)];
      if (one === other) return a - b;
      if (one === null) return 1;
      if (other === null) return -1;
      const way = typeof one === "string" ? one.localeCompare(other, "en") : one < other ? -1 : 1;
      return (down ? -way : way) || a - b;
    });
  }
  state.order = found;
  rows.scrollTop = 0;
  const [one, many] = data.words;
  byId("found").textContent = words.length ? `${count(found.length)} of ${near.count ? plural(shownMatches, "row", "rows") : plural(shownMatches, one, many)}` : "";
  showRows();
}
function showHead() {
  const made = cells.map((column, n) => {
    const sorted = state.sort && state.sort.column === n ? (state.sort.down ? "descending" : "ascending") : "none";
    const sign = { none: "", ascending: "▲", descending: "▼" }[sorted];
    const button = node("button", { type: "button", "data-column": n }, column.name, node("span", { class: "sign", "aria-hidden": "true" }, sign));
    button.addEventListener("click", () => {
      const again = state.sort && state.sort.column === n;
      state.sort = again && state.sort.down ? null : { column: n, down: Boolean(again) };
      showHead();
      order();
      byId("head").querySelectorAll("button")[n].focus();
    });
    return node("th", { scope: "col", "aria-sort": sorted, class: column.kind === "number" ? "number" : null }, button);
  });
  byId("head").replaceChildren(node("tr", {}, ...made));
}
function showRows() {
  const total = state.order.length;
  const first = Math.max(0, Math.floor(rows.scrollTop / LINE) - 6);
  const last = Math.min(total, first + Math.ceil((rows.clientHeight || 420) / LINE) + 12);
  const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.match : undefined;
  const made = [];
  const space = (high) => {
    const cell = node("td", { colspan: Math.max(1, cells.length) });
    cell.style.height = `${high}px`;
    made.push(node("tr", { class: "space", "aria-hidden": "true" }, cell));
  };
  if (first) space(first * LINE);
  const reachable = state.order.includes(state.selected) ? state.selected : state.order[0];
  for (let n = first; n < last; n++) {
    const match = state.order[n];
    const row = node("tr", {
      "data-match": match, "aria-selected": match === state.selected ? "true" : "false", "aria-rowindex": n + 2,
      tabindex: match === reachable ? 0 : -1,
    });
    for (const column of cells) {
      const words = text(column, match);
      row.append(node("td", { class: column.kind === "number" ? "number" : null, title: words.length > 40 ? words : null }, words));
    }
    made.push(row);
  }
  if (last < total) space((total - last) * LINE);
  body.replaceChildren(...made);
  byId("table").setAttribute("aria-rowcount", total + 1);
  if (focused !== undefined) {
    const again = body.querySelector(`tr[data-match="${focused}"]`);
    if (again) again.focus({ preventScroll: true });
  }
  if (!total) {
    const [, many] = data.words;
    made.push(node("tr", { class: "space" }, node("td", { class: "none", colspan: Math.max(1, cells.length) },
      shownMatches ? "Nothing has this text." : `There are no ${many}.`)));
    body.replaceChildren(...made);
  }
}
function scrollToRow(match) {
  const place = state.order.indexOf(match);
  if (place < 0) return;
  const top = place * LINE, high = rows.clientHeight - LINE;
  if (top < rows.scrollTop || top + LINE > rows.scrollTop + high) rows.scrollTop = Math.max(0, top - high / 2);
}
body.addEventListener("click", (e) => {
  const row = e.target.closest("tr[data-match]");
  if (row) select(Number(row.dataset.match));
});
body.addEventListener("keydown", (e) => {
  const row = e.target.closest("tr[data-match]");
  if (!row) return;
  const match = Number(row.dataset.match);
  const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[e.key];
  if (e.key === "Enter" || e.key === " ") { e.preventDefault(); select(match); }
  if (!step) return;
  e.preventDefault();
  const place = Math.max(0, Math.min(state.order.length - 1, state.order.indexOf(match) + step));
  const next = state.order[place];
  scrollToRow(next);
  select(next);
  const there = body.querySelector(`tr[data-match="${next}"]`);
  if (there) there.focus({ preventScroll: true });
});
rows.addEventListener("scroll", showRows);
byId("filter").addEventListener("input", (e) => { state.filter = e.target.value; order(); });

// --- the page ---------------------------------------------------------------------------------

function describePage() {
  const [one, many] = data.words;
  byId("title").textContent = data.title;
  document.title = `${data.title} · celc report`;
  const told = [
    shownEvents < events.count ? `showing ${count(shownEvents)} of ${count(events.count)} events` : plural(events.count, "event", "events"),
    near.first < matches.count ? `showing ${count(near.first)} of ${count(matches.count)} ${many}` : plural(matches.count, one, many),
  ];
  const nearShown = shownMatches - near.first;
  if (data.near) told.push(nearShown < near.count ? `showing ${count(nearShown)} of ${count(near.count)} ${NEAR[1]} (grey)` : `${plural(near.count, ...NEAR)} (grey)`);
  if (lanes.keys.length) told.push(plural(lanes.count, "partition", "partitions"));
  if (axis.kind === "time") told.push("times in UTC");
  byId("summary").textContent = told.join(" · ");
  byId("notes").replaceChildren(...data.notes.map((note) => node("li", {}, note)));
  const listed = data.near ? `${many} and ${NEAR[1]}` : many;
  byId("rows-name").textContent = listed.charAt(0).toUpperCase() + listed.slice(1);
  if (data.text) {
    byId("query").hidden = false;
    byId("text").textContent = data.text;
    if (typeof celc_colours !== "undefined") celc_colours.colour(byId("text"));
  }
  timeline.setAttribute("aria-label", `Timeline of ${told.join(", ")}. The list below has all that it shows of ${listed}.`);
  histogram.setAttribute("aria-label", `${count(matches.count)} ${many} over time, by their end`);
  byId("legend").replaceChildren(...types.map((name, type) => {
    const made = node("button", { type: "button", "aria-pressed": "true" }, icon(type), name);
    made.addEventListener("click", () => {
      if (!state.hidden.delete(type)) state.hidden.add(type);
      made.setAttribute("aria-pressed", String(!state.hidden.has(type)));
      draw();
    });
    return made;
  }));
  const choices = axis.kind === "position" ? [["position", "position"]]
    : [["order", axis.name], ["position", "position"]];
  byId("axis").replaceChildren(...choices.map(([id, name]) => node("option", { value: id }, name)));
  byId("axes").hidden = choices.length < 2;
  byId("only").hidden = !lanes.keys.length;
  if (shownMatches <= 10) rows.classList.add("short");
}
byId("axis").addEventListener("change", (e) => {
  state.byPosition = e.target.value === "position";
  layOut();
  draw();
});
function tellHidden() {
  byId("matched").checked = state.matchedOnly;
  byId("empty").textContent = state.matchedOnly && emptyLanes ? `(${count(emptyLanes)} hidden)` : "";
}
tellHidden();
byId("matched").addEventListener("change", (e) => {
  state.matchedOnly = e.target.checked;
  tellHidden();
  scroller.scrollTop = 0;
  stack();
  draw();
});
byId("in").addEventListener("click", () => zoom(0.6));
byId("out").addEventListener("click", () => zoom(1 / 0.6));
byId("fit").addEventListener("click", fit);
window.addEventListener("resize", () => { stack(); draw(); showRows(); });
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); draw(); });

readColours();
describePage();
showHead();
layOut();
order();
showFacts();
drawAll();

function placeOfEvent(event) {
  const lane = laneOrder[events.lane[event]];
  const place = state.lanes.indexOf(events.lane[event]);
  const box = timeline.getBoundingClientRect();
  return { x: box.left + toX(marksX()[event]), y: box.top + state.tops[place] - scroller.scrollTop + markY(lane, event) };
}
function placeOfMatch(match) {
  const lane = laneOrder[matches.lane[match]];
  const place = state.lanes.indexOf(matches.lane[match]);
  const box = timeline.getBoundingClientRect();
  const [from, to] = ends(match);
  return { x: box.left + toX((from + to) / 2), y: box.top + state.tops[place] - scroller.scrollTop + barY(lane, match) };
}
// What a test or a person at the console may ask; nothing of it changes the data.
window.celcReport = {
  counts: () => ({
    events: events.count, eventsShown: shownEvents, matches: matches.count, matchesShown: near.first, nearMisses: near.count,
    partitions: lanes.count, lanes: state.lanes.length,
    firstLane: state.lanes.length ? laneName(state.lanes[0]) : null, marksDrawn: state.marksDrawn, barsDrawn: state.barsDrawn,
    rows: state.order.length, selected: state.selected,
    selectedEvents: state.selected < 0 ? [] : eventsOf(state.selected).map(([n]) => n),
  }),
  order: () => [...state.order], view: () => [state.from, state.to], drawNow: drawAll, placeOfEvent, placeOfMatch, select,
};
