// Moving and zooming, hovering, and the match that is selected.
// --- moving -----------------------------------------------------------------------------------

function look(from, to) {
  const whole = state.high - state.low;
  const least = state.byPosition ? 2 : Math.max(whole / 1e7, axis.kind === "time" ? 20 : 0);
  let wide = Math.min(whole, Math.max(least, to - from));
  let begin = (from + to) / 2 - wide / 2;
  begin = Math.max(state.low, Math.min(state.high - wide, begin));
  const zoomed = Math.abs(wide - (state.to - state.from)) > 1e-9 * wide;
  state.from = begin;
  state.to = begin + wide;
  if (zoomed) stack();
  draw();
}
function zoom(factor, px = (GUTTER + width()) / 2) {
  const at = toValue(px);
  look(at - (at - state.from) * factor, at + (state.to - at) * factor);
}
const pan = (part) => look(state.from + part * (state.to - state.from), state.to + part * (state.to - state.from));
const fit = () => look(state.low, state.high);

function hit(px, py) {
  const at = py + scroller.scrollTop;
  const place = firstAt(state.tops, (top) => top, at + 0.001) - 1;
  if (place < 0 || px < GUTTER - REACH) return null;
  const number = state.lanes[place];
  const lane = laneOrder[number];
  const y = at - state.tops[place];
  if (y > lane.height) return null;
  if (y >= lane.marksTop - 2) return nearestMark(lane, px, y);
  if (y >= lane.bandsTop) {
    const track = lane.tracks[Math.floor((y - lane.bandsTop) / TRACK)] || [];
    for (let n = Math.max(0, firstAt(track, (m) => ends(m)[1], toValue(px - 4))); n < track.length; n++) {
      const [from, to] = ends(track[n]);
      if (toX(from) > px + 4) break;
      if (toX(to) >= px - 4) return { match: track[n] };
    }
    return null;
  }
  const under = lane.crowd.filter((m) => toX(ends(m)[0]) <= px + 2 && toX(ends(m)[1]) >= px - 2);
  return under.length ? { crowd: under } : null;
}
function nearestMark(lane, px, y) {
  const xs = marksX();
  let best = null, least = REACH * REACH;
  for (let n = firstAt(lane.marks, (e) => xs[e], toValue(px - REACH)); n < lane.marks.length; n++) {
    const event = lane.marks[n];
    const away = toX(xs[event]) - px;
    if (away > REACH) break;
    if (state.hidden.has(events.type[event])) continue;
    const distance = away * away + (markY(lane, event) - y) ** 2;
    if (distance < least) { least = distance; best = event; }
  }
  return best === null ? null : { event: best };
}

const tip = byId("tip");
function icon(type) {
  const kind = type % 4;
  const filled = { fill: type === data.quiet ? "var(--mute)" : `var(--t${type % 8})` };
  const made = drawn("svg", { width: 12, height: 12, viewBox: "-6 -6 12 12", "aria-hidden": "true" });
  made.append(kind === 0 ? drawn("circle", { r: 4.4, ...filled })
    : kind === 1 ? drawn("rect", { x: -4, y: -4, width: 8, height: 8, ...filled })
      : drawn("path", { d: kind === 2 ? "M0-5 4.8 3.8-4.8 3.8Z" : "M0-5.4 5.4 0 0 5.4-5.4 0Z", ...filled }));
  return made;
}
const eventFacts = (event) => events.columns.filter((c) => c.name !== "type").map((c) => [c.name, text(c, event)]);
function describe(found) {
  if (found.event !== undefined) {
    return [node("strong", {}, icon(events.type[found.event]), types[events.type[found.event]],
      ` #${count(events.pos[found.event])}`), facts(eventFacts(found.event))];
  }
  if (found.crowd) {
    const [one, many] = near.count ? ["bar", "bars"] : data.words;
    return [node("strong", {}, `${plural(found.crowd.length, one, many)} more here`),
      node("div", {}, "Zoom in to see each of them.")];
  }
  const pairs = factsOf(found.match).filter(([name]) => !lanes.keys.some((k) => k.name === name));
  return [node("strong", {}, nameOf(found.match)), facts(pairs.slice(0, 14))];
}
// What was bent tells most of a near miss, and nothing of a match.
const TOLD = ["part", "asked", "found", "amount"];
function factsOf(match, columns = matches.columns) {
  if (!near.count) return columns.map((c) => [c.name, text(c, match)]);
  const told = matches.columns.slice(near.columns);
  const rest = columns.filter((c) => !told.includes(c)).map((c) => [c.name, text(c, match)]);
  const bent = TOLD.map((name) => told.find((c) => c.name === name)).map((c) => [c.name, text(c, match)]);
  return isNear(match) ? [...bent, ...rest] : rest;
}
function hover(found, x, y) {
  const before = state.hovered;
  state.hovered = found;
  if (found) {
    tip.replaceChildren(...describe(found));
    placeTip(tip, x, y);
  } else tip.hidden = true;
  const same = (before && before.event) === (found && found.event) && (before && before.match) === (found && found.match);
  if (!same) draw();
}

let drag = null;
timeline.addEventListener("pointerdown", (e) => {
  drag = { x: e.clientX, from: state.from, to: state.to, moved: false };
  timeline.setPointerCapture(e.pointerId);
});
timeline.addEventListener("pointermove", (e) => {
  const box = timeline.getBoundingClientRect();
  if (drag) {
    const away = e.clientX - drag.x;
    drag.moved ||= Math.abs(away) > 3;
    if (drag.moved) {
      hover(null);
      look(drag.from - away / scaleOf(), drag.to - away / scaleOf());
      return;
    }
  }
  hover(hit(e.clientX - box.left, e.clientY - box.top), e.clientX, e.clientY);
});
timeline.addEventListener("pointerup", (e) => {
  const moved = drag && drag.moved;
  drag = null;
  if (moved) return;
  const box = timeline.getBoundingClientRect();
  const found = hit(e.clientX - box.left, e.clientY - box.top);
  if (found && found.match !== undefined) select(found.match, true);
  else if (found && found.event !== undefined) {
    const with_ = firstMatchWith(found.event);
    if (with_ >= 0) select(with_, true);
  } else select(-1);
});
timeline.addEventListener("pointerleave", () => { if (!drag) hover(null); });
timeline.addEventListener("wheel", (e) => {
  if (!e.ctrlKey && !e.metaKey && Math.abs(e.deltaX) <= Math.abs(e.deltaY)) return;
  e.preventDefault();
  if (e.ctrlKey || e.metaKey) {
    zoom(Math.exp(Math.max(-60, Math.min(60, e.deltaY)) / 180), e.clientX - timeline.getBoundingClientRect().left);
  } else look(state.from + e.deltaX / scaleOf(), state.to + e.deltaX / scaleOf());
}, { passive: false });
timeline.addEventListener("dblclick", (e) => zoom(0.5, e.clientX - timeline.getBoundingClientRect().left));
timeline.addEventListener("keydown", (e) => {
  const does = {
    ArrowLeft: () => pan(-0.1), ArrowRight: () => pan(0.1), "+": () => zoom(0.7), "=": () => zoom(0.7),
    "-": () => zoom(1 / 0.7), 0: fit, ArrowDown: () => { scroller.scrollTop += 60; },
    ArrowUp: () => { scroller.scrollTop -= 60; },
  }[e.key];
  if (does && !e.ctrlKey && !e.metaKey) { e.preventDefault(); does(); }
});
document.addEventListener("keydown", (e) => { if (e.key === "Escape") { select(-1); hover(null); } });
scroller.addEventListener("scroll", () => { hover(null); draw(); });

// Clicking an event again goes on to the next match that has it.
function firstMatchWith(event) {
  let first = -1;
  for (let match = 0; match < shownMatches; match++) {
    for (let n = matches.offsets[match]; n < matches.offsets[match + 1]; n++) {
      if (matches.events[n] !== event) continue;
      if (match > state.selected) return match;
      if (first < 0) first = match;
      break;
    }
  }
  return first;
}

// --- selecting --------------------------------------------------------------------------------

function select(match, fromTimeline = false) {
  if (match === state.selected || !(match < shownMatches)) { draw(); return; }
  state.selected = match;
  if (match >= 0 && !fromTimeline) bringIntoView(match);
  if (match >= 0 && fromTimeline) scrollToRow(match);
  showFacts();
  showRows();
  draw();
}
function bringIntoView(match) {
  const both = ends(match);
  const place = state.lanes.indexOf(matches.lane[match]);
  if (place >= 0) {
    const top = state.tops[place], lane = laneOrder[matches.lane[match]];
    const high = viewHeight(state.total);
    if (top < scroller.scrollTop || top + lane.height > scroller.scrollTop + high) {
      scroller.scrollTop = Math.max(0, top - (high - lane.height) / 2);
    }
  }
  if (!both) return;
  const wide = state.to - state.from;
  if (both[0] >= state.from && both[1] <= state.to) return;
  const middle = (both[0] + both[1]) / 2;
  const wanted = Math.max(wide, (both[1] - both[0]) * 1.2);
  look(middle - wanted / 2, middle + wanted / 2);
}
function showFacts() {
  const box = byId("facts");
  const match = state.selected;
  byId("facts-name").textContent = match < 0 ? "Selected" : `Selected: ${nameOf(match)}`;
  if (match < 0) {
    box.replaceChildren(node("p", { class: "none" }, shownMatches
      ? `Choose a ${data.words[0]} in the list or on the timeline.` : "Nothing to select."));
    return;
  }
  const pairs = factsOf(match, matches.columns.filter((c) => c.kind !== "label"));
  const parts = [facts(pairs)];
  const list = eventsOf(match);
  if (matches.labels.length) {
    const size = matches.sizes[match];
    const shown = Math.min(list.length, 200);
    parts.push(node("h3", {}, shown < size ? `${count(shown)} of ${plural(size, "event", "events")}` : plural(size, "event", "events")));
    const items = list.slice(0, shown).map(([event, label]) => node("li", {}, icon(events.type[event]),
      node("div", {}, node("div", { class: "what" }, matches.labels[label],
        node("span", {}, ` ${types[events.type[event]]} #${count(events.pos[event])}`)), facts(eventFacts(event)))));
    parts.push(node("ol", {}, ...items));
  }
  box.replaceChildren(...parts);
  box.scrollTop = 0;
}
