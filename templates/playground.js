// The page of `celc serve --local`: checks the query while it is typed, and runs it when asked.
const PAUSE = 300; // milliseconds without a change after which a text is checked
const FIRST_QUERY = `CREATE STREAM Farm {
  EVENT T { id: LONG, value: DOUBLE, ts: TIMESTAMP }, -- temperature
  EVENT H { id: LONG, value: DOUBLE, ts: TIMESTAMP } -- humidity
}

SELECT hot[value], dry[value]
FROM Farm
WHERE (T AS hot ; H AS dry)
  FILTER hot.value > 40 AND dry.value <= 25
PARTITION BY id
WITHIN 10 MINUTES [ts]
`;
const FIRST_ROWS = `type,id,value,ts
T,1,41,2026-07-01 12:00:00
H,1,24,2026-07-01 12:02:00
T,2,39,2026-07-01 12:03:00
H,1,23,2026-07-01 12:05:00
`;

async function ask(what, question) {
  const body = JSON.stringify(question);
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch(what, { method: "POST", headers, body });
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.refused);
  return found;
}

const editor = celc_editor.open(byId("query"), FIRST_QUERY, {
  nonce: JSON.parse(byId("data").textContent).nonce,
  changed: () => { clearTimeout(waiting); waiting = setTimeout(check, PAUSE); },
  run: () => { run(); return true; },
});
let waiting = 0;
byId("events").value = FIRST_ROWS;

async function check() {
  const text = editor.text();
  const found = await ask("/check", { query: text }).then((answer) => answer.found, (problem) => [
    { severity: "error", message: problem.message, help: [], fixes: [], start: 0, end: 0 },
  ]);
  if (text !== editor.text()) return;
  // celc counts characters, and the page units of UTF-16.
  const signs = [...text];
  const places = [0];
  for (const sign of signs) places.push(places[places.length - 1] + sign.length);
  const placed = (one) => ({ from: places[one.start], to: places[one.end] });
  editor.show(found.map((one) => ({ ...placed(one), severity: one.severity, message: one.message })));
  byId("problems").replaceChildren(...found.map((one) => node("li", { class: one.severity },
    [one.message, ...one.help.map((line) => `help: ${line}`)].join("\n"),
    ...one.fixes.map((fix) => button(fix, placed(fix), signs)))));
}

function button(fix, place, signs) {
  const old = signs.slice(fix.start, fix.end).join("");
  const made = node("button", { type: "button" }, fix.text.trim() ? `write ${fix.text.trim()}` : `leave out ${old}`);
  made.addEventListener("click", () => editor.write(place, fix.text));
  return node("div", {}, made);
}

async function run() {
  byId("status").textContent = "running …";
  byId("run").disabled = true;
  try {
    const { queries } = await ask("/run", { query: editor.text(), rows: byId("events").value });
    byId("matches").replaceChildren(...queries.flatMap((one) => shown(one, queries.length > 1)));
    const rows = queries.reduce((sum, one) => sum + one.rows.length, 0);
    byId("status").textContent = `${count(rows)} row${rows === 1 ? "" : "s"}`;
  } catch (problem) {
    byId("matches").replaceChildren(node("pre", {}, problem.message));
    byId("status").textContent = "not run";
  }
  byId("run").disabled = false;
}

function shown({ name, rows, more }, named) {
  const columns = Object.keys(rows[0] || {});
  const head = node("tr", {}, ...columns.map((column) => node("th", { scope: "col" }, column)));
  const body = rows.map((row) => node("tr", {}, ...columns.map((one) => node("td", {}, cell(row[one])))));
  const table = node("table", {}, node("thead", {}, head), node("tbody", {}, ...body));
  return [
    ...(named ? [node("h3", {}, name)] : []),
    rows.length ? table : node("p", {}, "There are no matches."),
    ...(more ? [node("p", {}, `These are the first ${count(rows.length)}; there may be more.`)] : []),
  ];
}

// A label is a list of its events: #3 value=41.5
function cell(value) {
  if (Array.isArray(value)) return value.map(cell).join(", ");
  if (value === null || typeof value !== "object") return String(value ?? "");
  return Object.entries(value).map(([name, one]) => (name === "pos" ? `#${one}` : `${name}=${cell(one)}`)).join(" ");
}

byId("run").addEventListener("click", run);
byId("format").addEventListener("click", () => ask("/format", { query: editor.text() }).then(
  ({ text }) => editor.write({ from: 0, to: editor.text().length }, text),
  (problem) => { byId("status").textContent = "not formatted"; byId("matches").replaceChildren(node("pre", {}, problem.message)); },
));
check();
