// The page of an automaton: what arrows and states tell when the mouse or a key is on them.
const data = JSON.parse(byId("data").textContent);
const tip = byId("tip");
const state = (number) => (number < 0 ? "match" : number === 0 ? "start" : `state ${number}`);

function describe(arrow) {
  const numbers = arrow.dataset.numbers.split(" ").map(Number);
  const first = data.transitions[numbers[0]];
  const parts = [node("strong", {}, `${state(first.source)} → ${state(first.target)}`)];
  for (const number of numbers) {
    const one = data.transitions[number];
    const pairs = [["event", one.events], ["marks", one.marks]];
    if (one.count !== null) pairs.push(["taken", `at ${count(one.count)} of ${count(data.events)} events`]);
    parts.push(facts(pairs));
  }
  return parts;
}
function show(parts, x, y) {
  tip.replaceChildren(...parts);
  placeTip(tip, x, y);
}
const hide = () => { tip.hidden = true; };

const arrows = [...document.querySelectorAll(".arrow")];
// Labels lie above all lines, so each is apart from its arrow.
const tags = new Map([...document.querySelectorAll(".tag")].map((tag) => [Number(tag.dataset.arrow), tag]));
function light(arrow, on) {
  arrow.classList.toggle("on", on);
  const tag = tags.get(Number(arrow.dataset.arrow));
  if (tag) tag.classList.toggle("on", on);
}
for (const arrow of arrows) {
  for (const shape of [arrow, tags.get(Number(arrow.dataset.arrow))]) {
    if (!shape) continue;
    shape.addEventListener("pointermove", (e) => show(describe(arrow), e.clientX, e.clientY));
    shape.addEventListener("pointerenter", () => light(arrow, true));
    shape.addEventListener("pointerleave", () => { light(arrow, false); hide(); });
    shape.addEventListener("focus", () => {
      if (!shape.matches(":focus-visible")) return;
      const box = shape.getBoundingClientRect();
      light(arrow, true);
      show(describe(arrow), box.left + box.width / 2, box.top + box.height / 2);
    });
    shape.addEventListener("blur", () => { light(arrow, false); hide(); });
  }
}
const nodes = [...document.querySelectorAll(".node")];
for (const shape of nodes) {
  const number = Number(shape.dataset.state);
  const words = data.states[number] ?? "a match ends with this event";
  shape.addEventListener("pointermove", (e) => show([node("strong", {},
    number < data.states.length ? state(number) : "match"), node("div", {}, words)], e.clientX, e.clientY));
  shape.addEventListener("pointerenter", () => {
    for (const arrow of arrows) {
      const one = data.transitions[Number(arrow.dataset.numbers.split(" ")[0])];
      light(arrow, one.source === number || (one.target < 0 ? data.states.length : one.target) === number);
    }
  });
  shape.addEventListener("pointerleave", () => {
    hide();
    for (const arrow of arrows) light(arrow, false);
  });
}
document.addEventListener("keydown", (e) => { if (e.key === "Escape") hide(); });

celc_colours.colour(byId("text"));

window.celcAutomaton = {
  counts: () => ({ states: data.states.length, transitions: data.transitions.length, nodes: nodes.length,
    arrows: arrows.length, listed: document.querySelectorAll("#transitions tbody tr").length, events: data.events }),
  transitions: () => data.transitions.map((one) => ({ ...one })),
};
