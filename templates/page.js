// Parts that all pages share. Texts of data reach the page as text nodes alone.
const byId = (id) => document.getElementById(id);
const count = (n) => n.toLocaleString("en-US");

function node(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function drawn(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function timeText(microseconds) {
  const second = Math.floor(microseconds / 1e6);
  const rest = Math.round(microseconds - second * 1e6);
  const date = new Date(second * 1000);
  if (Number.isNaN(date.getTime())) return String(microseconds);
  const text = date.toISOString().replace("T", " ").replace(/\.000Z$/, "");
  return rest ? `${text}.${String(rest).padStart(6, "0").replace(/0+$/, "")}` : text;
}

function facts(pairs) {
  const list = node("dl");
  for (const [name, text] of pairs) list.append(node("dt", {}, name), node("dd", {}, text));
  return list;
}

function placeTip(tip, x, y) {
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const right = x + 14 + box.width > window.innerWidth - 8;
  const low = y + 16 + box.height > window.innerHeight - 8;
  tip.style.left = `${Math.max(8, right ? x - 14 - box.width : x + 14)}px`;
  tip.style.top = `${Math.max(8, low ? y - 12 - box.height : y + 16)}px`;
}
