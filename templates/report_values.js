// The data of a report, its axes, and where lanes and bars are.
const data = JSON.parse(byId("data").textContent);
const { events, matches, lanes, types, axis } = data;
const shownEvents = events.x.length;
const shownMatches = matches.lane.length;
// Near misses are rows behind the matches.
const near = data.near || { first: shownMatches, count: 0 };
const isNear = (match) => match >= near.first;
const NEAR = ["near miss", "near misses"];
const GUTTER = lanes.keys.length ? 150 : 18;
const RIGHT = 18, TRACK = 9, ROW = 16, PAD = 8, MOST_TRACKS = 7, STRIP = 12, REACH = 9;
const MARK_ROWS = Math.max(1, Math.min(types.length, 6));
const state = {
  byPosition: axis.kind === "position", from: 0, to: 1, low: 0, high: 1, hidden: new Set(),
  matchedOnly: false, selected: -1, hovered: null, sort: null, filter: "", order: [],
  lanes: [], tops: [], marksDrawn: 0, barsDrawn: 0,
};

// --- values -----------------------------------------------------------------------------------

function value(column, row) {
  if (column.kind === "text") return column.codes[row] < 0 ? null : column.texts[column.codes[row]];
  return column.values[row];
}
function text(column, row) {
  const found = value(column, row);
  if (found === null || found === undefined) return "NULL";
  if (column.kind === "time") return timeText(found);
  if (column.kind === "boolean") return found ? "TRUE" : "FALSE";
  return String(found);
}
function sortKey(column, row) {
  if (column.kind === "label") return column.first[row] ?? null;
  const found = value(column, row);
  if (found === null || found === undefined) return null;
  return column.numeric ? Number(found) : found;
}
const laneName = (lane) => lanes.keys.map((key) => text(key, lane)).join(" · ");
const laneLong = (lane) => lanes.keys.map((key) => `${key.name} = ${text(key, lane)}`).join(", ");
const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many}`;
const nameOf = (match) => (isNear(match)
  ? `${NEAR[0]} ${count(match - near.first + 1)}` : `${data.words[0]} ${count(match + 1)}`);

// --- the two axes -----------------------------------------------------------------------------

const marksX = () => (state.byPosition ? events.pos : events.x);
function ends(match) {
  const [starts, stops] = state.byPosition
    ? [matches.startPos, matches.endPos] : [matches.start, matches.end];
  const [from, to] = [starts[match], stops[match]];
  if (from === null || to === null || (state.byPosition && (from < 0 || to < 0))) return null;
  return from <= to ? [from, to] : [to, from];
}

const laneOrder = Array.from({ length: lanes.count }, () => ({ marks: [], bars: [] }));
const matchedLanes = new Set(matches.lane);
for (const lane of laneOrder) lane.matches = 0;
for (const lane of matches.lane.slice(0, near.first)) laneOrder[lane].matches++;
// Lanes with most matches come first. Where there are many, those without any wait to be asked for.
const MANY_LANES = 12;
const byMatches = laneOrder.map((_, n) => n).sort((a, b) => laneOrder[b].matches - laneOrder[a].matches || a - b);
const emptyLanes = lanes.count - matchedLanes.size;
state.matchedOnly = lanes.count > MANY_LANES && matchedLanes.size > 0 && emptyLanes > 0;
function layOut() {
  const xs = marksX();
  let low = Infinity, high = -Infinity;
  for (const lane of laneOrder) { lane.marks = []; lane.bars = []; }
  for (let n = 0; n < shownEvents; n++) {
    if (xs[n] === null) continue;
    laneOrder[events.lane[n]].marks.push(n);
    if (xs[n] < low) low = xs[n];
    if (xs[n] > high) high = xs[n];
  }
  for (let n = 0; n < shownMatches; n++) {
    const both = ends(n);
    if (!both) continue;
    laneOrder[matches.lane[n]].bars.push(n);
    if (both[0] < low) low = both[0];
    if (both[1] > high) high = both[1];
  }
  for (const lane of laneOrder) {
    lane.marks.sort((a, b) => xs[a] - xs[b] || a - b);
    lane.bars.sort((a, b) => ends(a)[0] - ends(b)[0] || ends(a)[1] - ends(b)[1] || a - b);
  }
  if (low > high) { low = 0; high = 1; }
  const wide = (high - low) || 1;
  state.least = low;
  state.low = low - wide * 0.02;
  state.high = high + wide * 0.02;
  state.from = state.low;
  state.to = state.high;
  stack();
}

// Each bar gets the first track that is free; bars without one share a strip above the tracks.
function stack() {
  measured = 0;
  const gap = 7 / scaleOf();
  const shown = state.matchedOnly ? byMatches.filter((lane) => matchedLanes.has(lane)) : byMatches;
  state.lanes = shown;
  state.tops = [];
  let top = 0;
  for (const number of shown) {
    const lane = laneOrder[number];
    const free = [];
    lane.track = new Map();
    lane.tracks = [];
    lane.crowd = [];
    for (const match of lane.bars) {
      const [from, to] = ends(match);
      let track = free.findIndex((end) => end < from);
      if (track < 0 && free.length < MOST_TRACKS) track = free.push(-Infinity) - 1;
      if (track < 0) { lane.crowd.push(match); continue; }
      free[track] = to + gap;
      lane.track.set(match, track);
      (lane.tracks[track] ||= []).push(match);
    }
    const strip = lane.crowd.length ? STRIP : 0;
    lane.top = top;
    lane.bandsTop = PAD + strip;
    lane.marksTop = lane.bandsTop + free.length * TRACK + (free.length ? 4 : 0);
    lane.height = lane.marksTop + MARK_ROWS * ROW + PAD;
    state.tops.push(top);
    top += lane.height;
  }
  byId("tall").style.height = `${Math.max(0, top - viewHeight(top))}px`;
  state.total = top;
}
