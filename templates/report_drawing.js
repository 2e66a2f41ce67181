// What is drawn: lanes with marks and bars, the histogram, the scale.
// --- canvases ---------------------------------------------------------------------------------

const timeline = byId("timeline"), histogram = byId("histogram"), scale = byId("scale");
const scroller = byId("lanes");
let colours = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["card", "line", "faint", "ink", "soft", "mute", "accent", "accent-soft", "bar",
    "bar-line", "focus", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7"]) {
    colours[name] = style.getPropertyValue(`--${name}`).trim();
  }
  colours.font = style.fontFamily;
}
const colourOf = (type) => (type === data.quiet ? colours.mute : colours[`t${type % 8}`]);
const most = () => Math.min(560, Math.max(140, window.innerHeight * 0.56));
const viewHeight = (total) => Math.max(60, Math.min(total, most()));
// Asked for once a drawing: each answer of the page takes longer than a mark.
let measured = 0;
const width = () => (measured ||= timeline.clientWidth || 800);
const scaleOf = () => (width() - GUTTER - RIGHT) / (state.to - state.from);
const toX = (x) => GUTTER + (x - state.from) * scaleOf();
const toValue = (px) => state.from + (px - GUTTER) / scaleOf();

function ready(canvas, high) {
  const ratio = window.devicePixelRatio || 1;
  const wide = canvas.clientWidth;
  if (canvas.width !== Math.round(wide * ratio) || canvas.height !== Math.round(high * ratio)) {
    canvas.width = Math.round(wide * ratio);
    canvas.height = Math.round(high * ratio);
    canvas.style.height = `${high}px`;
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, wide, high);
  return pen;
}

function shape(pen, type, x, y, size) {
  const kind = type % 4;
  pen.beginPath();
  if (kind === 0) pen.arc(x, y, size, 0, 7);
  else if (kind === 1) pen.rect(x - size * 0.88, y - size * 0.88, size * 1.76, size * 1.76);
  else if (kind === 2) {
    pen.moveTo(x, y - size * 1.2); pen.lineTo(x + size * 1.1, y + size * 0.85);
    pen.lineTo(x - size * 1.1, y + size * 0.85); pen.closePath();
  } else {
    pen.moveTo(x, y - size * 1.25); pen.lineTo(x + size * 1.25, y);
    pen.lineTo(x, y + size * 1.25); pen.lineTo(x - size * 1.25, y); pen.closePath();
  }
}

// A picture of each mark, because thousands of them are drawn faster than filled.
const made = new Map();
function stamp(type, size) {
  const ratio = window.devicePixelRatio || 1;
  const key = `${type % 8} ${type % 4} ${size} ${ratio} ${colourOf(type)}`;
  if (!made.has(key)) {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = Math.ceil(2 * (size + 3) * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.fillStyle = colourOf(type);
    shape(pen, type, canvas.width / ratio / 2, canvas.height / ratio / 2, size);
    pen.fill();
    made.set(key, canvas);
  }
  return made.get(key);
}

function fitted(pen, words, wide) {
  if (pen.measureText(words).width <= wide) return words;
  let low = 0, high = words.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measureText(`${words.slice(0, middle)}…`).width <= wide) low = middle; else high = middle - 1;
  }
  return `${words.slice(0, low)}…`;
}

function firstAt(items, of, wanted) {
  let low = 0, high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (of(items[middle]) < wanted) low = middle + 1; else high = middle;
  }
  return low;
}

const eventsOf = (match) => {
  const found = [];
  for (let n = matches.offsets[match]; n < matches.offsets[match + 1]; n++) {
    found.push([matches.events[n], matches.labelOf[n]]);
  }
  return found;
};

function drawTimeline() {
  const high = viewHeight(state.total);
  const pen = ready(timeline, high);
  const wide = width(), scroll = scroller.scrollTop;
  const chosen = state.selected < 0 ? new Set() : new Set(eventsOf(state.selected).map(([n]) => n));
  state.marksDrawn = 0;
  state.barsDrawn = 0;
  const first = Math.max(0, firstAt(state.tops, (top) => top, scroll + 0.5) - 1);
  for (let place = first; place < state.lanes.length && state.tops[place] < scroll + high; place++) {
    drawLane(pen, state.lanes[place], state.tops[place] - scroll, wide, chosen);
  }
  if (!state.lanes.length) {
    pen.fillStyle = colours.soft;
    pen.font = `13px ${colours.font}`;
    pen.textAlign = "center";
    pen.fillText(shownEvents ? `No partition has a ${data.words[0]}.` : "There are no events.", wide / 2, high / 2);
  }
}

function drawLane(pen, number, top, wide, chosen) {
  const lane = laneOrder[number];
  pen.fillStyle = colours.line;
  pen.fillRect(0, top + lane.height - 1, wide, 1);
  pen.textAlign = "left";
  pen.textBaseline = "alphabetic";
  if (lanes.keys.length) {
    pen.fillStyle = colours.ink;
    pen.font = `600 12.5px ${colours.font}`;
    pen.fillText(fitted(pen, laneName(number), GUTTER - 30), 14, top + PAD + 12);
    pen.fillStyle = colours.mute;
    pen.font = `11px ${colours.font}`;
    if (lane.height >= 44) {
      const all = near.first === matches.count;
      const told = all ? plural(lane.matches, data.words[0], data.words[1]) : `${count(lane.matches)} shown`;
      pen.fillText(fitted(pen, told, GUTTER - 30), 14, top + PAD + 27);
    }
  }
  pen.save();
  pen.beginPath();
  pen.rect(GUTTER - 8, top, wide - GUTTER - RIGHT + 16, lane.height);
  pen.clip();
  for (let row = 0; row < MARK_ROWS; row++) {
    pen.fillStyle = colours.faint;
    pen.fillRect(GUTTER - 8, top + lane.marksTop + row * ROW + ROW / 2 - 0.5, wide, 1);
  }
  drawCrowd(pen, lane, top);
  drawBars(pen, lane, top);
  if (state.selected >= 0 && matches.lane[state.selected] === number) drawLinks(pen, lane, top);
  drawMarks(pen, lane, top, wide, chosen);
  pen.restore();
}

function drawCrowd(pen, lane, top) {
  if (!lane.crowd.length) return;
  pen.globalAlpha = Math.max(0.06, Math.min(0.5, 4 / lane.crowd.length));
  for (const match of lane.crowd) {
    const [from, to] = ends(match);
    if (to < state.from || from > state.to) continue;
    const x = Math.max(toX(from), -4);
    pen.fillStyle = isNear(match) ? colours.mute : colours.bar;
    pen.fillRect(x, top + PAD, Math.max(2, Math.min(toX(to), width() + 4) - x), STRIP - 4);
    state.barsDrawn++;
  }
  pen.globalAlpha = 1;
}

const barY = (lane, match) => (lane.track.has(match)
  ? lane.bandsTop + lane.track.get(match) * TRACK + TRACK / 2 : PAD + (STRIP - 4) / 2);

function drawBars(pen, lane, top) {
  const marked = [], dotted = [];
  // All bars of a lane are one shape, because a thousand shapes are slow to fill; near misses another.
  const plain = new Path2D(), bent = new Path2D();
  for (const track of lane.tracks) {
    for (let n = Math.max(0, firstAt(track, (m) => ends(m)[1], state.from)); n < track.length; n++) {
      const match = track[n];
      const [from, to] = ends(match);
      if (from > state.to) break;
      const y = top + barY(lane, match);
      const x = Math.max(toX(from), -20), stop = Math.min(toX(to), width() + 20);
      const bar = { match, x: x - 2.5, y, wide: stop - x + 5 };
      if (match === state.selected || (state.hovered && state.hovered.match === match)) marked.push(bar);
      else (isNear(match) ? bent : plain).roundRect(bar.x, y - 2.5, bar.wide, 5, 2.5);
      const size = matches.offsets[match + 1] - matches.offsets[match];
      if (size && (stop - x) / size > 7) dotted.push(bar);
      state.barsDrawn++;
    }
  }
  pen.globalAlpha = state.selected >= 0 ? 0.4 : 1;
  pen.fillStyle = colours.bar;
  pen.fill(plain);
  pen.fillStyle = colours.mute;
  pen.fill(bent);
  for (const { match, y } of dotted) drawDots(pen, match, y);
  pen.globalAlpha = 1;
  for (const bar of marked) {
    pen.fillStyle = colours.accent;
    pen.beginPath();
    pen.roundRect(bar.x, bar.y - 2.5, bar.wide, 5, 2.5);
    pen.fill();
    if (dotted.includes(bar)) drawDots(pen, bar.match, bar.y);
  }
}

function drawDots(pen, match, y) {
  const xs = marksX();
  for (let e = matches.offsets[match]; e < matches.offsets[match + 1]; e++) {
    const event = matches.events[e];
    pen.fillStyle = colourOf(events.type[event]);
    pen.beginPath();
    pen.arc(toX(xs[event]), y, 2.4, 0, 7);
    pen.fill();
  }
}

function drawLinks(pen, lane, top) {
  const xs = marksX();
  const match = state.selected;
  const both = ends(match);
  if (!both) return;
  const y = top + barY(lane, match);
  pen.strokeStyle = colours.accent;
  pen.lineWidth = 1.25;
  pen.setLineDash([3, 3]);
  pen.beginPath();
  for (const [event] of eventsOf(match)) {
    if (xs[event] === null) continue;
    const x = toX(xs[event]);
    pen.moveTo(x, y);
    pen.lineTo(x, top + markY(lane, event));
  }
  pen.stroke();
  pen.setLineDash([]);
  if (!lane.track.has(match)) {
    pen.fillStyle = colours.accent;
    pen.fillRect(toX(both[0]), y - 3, Math.max(4, toX(both[1]) - toX(both[0])), 6);
  }
}

const markY = (lane, event) => lane.marksTop + (events.type[event] % MARK_ROWS) * ROW + ROW / 2;

function drawMarks(pen, lane, top, wide, chosen) {
  const xs = marksX();
  const last = new Map();
  // Where marks are many, small ones leave more of each other to be seen.
  const spare = (lane.marks.length / MARK_ROWS) * (state.high - state.low) > 0
    ? (wide - GUTTER) * ((state.high - state.low) / (state.to - state.from)) / Math.max(1, lane.marks.length) : 99;
  const size = spare > 7 ? 4.4 : spare > 2 ? 3.6 : 2.8;
  const alpha = chosen.size ? 0.32 : spare > 7 ? 0.92 : 0.7;
  const stamps = types.map((_, type) => stamp(type, size));
  const ratio = window.devicePixelRatio || 1;
  const start = firstAt(lane.marks, (n) => xs[n], state.from - 10 / scaleOf());
  for (let n = start; n < lane.marks.length; n++) {
    const event = lane.marks[n];
    const x = toX(xs[event]);
    if (x > wide + 10) break;
    const type = events.type[event];
    if (state.hidden.has(type) || chosen.has(event)) continue;
    state.marksDrawn++;
    // Marks closer than half a pixel are one to the eye.
    if (last.has(type) && x - last.get(type) < 0.6) continue;
    last.set(type, x);
    pen.globalAlpha = alpha;
    if (spare <= 2) {
      // No shape can be told from the next here, and ticks are drawn faster.
      pen.fillStyle = colourOf(type);
      pen.fillRect(x - 0.9, top + markY(lane, event) - 4, 1.8, 8);
      continue;
    }
    const made = stamps[type];
    const wide_ = made.width / ratio;
    pen.drawImage(made, x - wide_ / 2, top + markY(lane, event) - wide_ / 2, wide_, wide_);
  }
  pen.globalAlpha = 1;
  for (const event of chosen) {
    if (laneOrder[events.lane[event]] !== lane || xs[event] === null) continue;
    const x = toX(xs[event]), y = top + markY(lane, event);
    pen.fillStyle = colourOf(events.type[event]);
    shape(pen, events.type[event], x, y, 5.2);
    pen.fill();
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 1.6;
    shape(pen, events.type[event], x, y, 6.8);
    pen.stroke();
    state.marksDrawn++;
  }
  const hovered = state.hovered && state.hovered.event;
  if (hovered !== undefined && hovered !== null && laneOrder[events.lane[hovered]] === lane) {
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 1.5;
    shape(pen, events.type[hovered], toX(xs[hovered]), top + markY(lane, hovered), 6.6);
    pen.stroke();
  }
}

function drawHistogram() {
  const high = 64;
  const pen = ready(histogram, high);
  const { low, high: end, counts } = data.counts[state.byPosition ? 1 : 0];
  const greatest = counts.reduce((a, b) => Math.max(a, b), 0);
  pen.font = `11px ${colours.font}`;
  pen.textBaseline = "alphabetic";
  pen.fillStyle = colours.mute;
  if (lanes.keys.length) pen.fillText(fitted(pen, `${data.words[1]} by their end`, GUTTER - 22), 14, high - 6);
  pen.fillStyle = colours.line;
  pen.fillRect(GUTTER - 8, high - 4, width() - GUTTER - RIGHT + 16, 1);
  if (!greatest) return;
  pen.save();
  pen.beginPath();
  pen.rect(GUTTER - 8, 0, width() - GUTTER - RIGHT + 16, high);
  pen.clip();
  const step = ((end - low) || 1) / counts.length;
  // Neighbouring parts are added up until a column is wide enough to be seen.
  const group = Math.max(1, Math.ceil(4 / (step * scaleOf())));
  const sums = [];
  for (let n = 0; n < counts.length; n += group) {
    sums.push(counts.slice(n, n + group).reduce((a, b) => a + b, 0));
  }
  const top = Math.max(...sums);
  pen.fillStyle = colours.accent;
  sums.forEach((sum, n) => {
    const x = toX(low + n * group * step);
    const wide = group * step * scaleOf();
    if (!sum || x + wide < 0 || x > width()) return;
    const tall = Math.max(2, (sum / top) * (high - 22));
    const left = end > low ? x : x - 2;
    pen.fillRect(left, high - 4 - tall, Math.max(2.5, Math.min(wide - 1, 40)), tall);
  });
  pen.restore();
  pen.fillStyle = colours.mute;
  pen.textAlign = "right";
  pen.fillText(`up to ${count(top)}`, width() - RIGHT + 4, 14);
  pen.textAlign = "left";
}

// --- scale ------------------------------------------------------------------------------------

const SECONDS = [1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1,
  0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800,
  604800, 1209600, 2592000, 7776000, 15552000, 31536000];
function drawScale() {
  const high = 30;
  const pen = ready(scale, high);
  const time = axis.kind === "time" && !state.byPosition;
  const room = 96 / scaleOf();
  let step;
  if (time) {
    const found = SECONDS.find((seconds) => seconds * 1e6 >= room);
    step = (found || Math.ceil(room / 31536e9) * 31536000) * 1e6;
  } else {
    const ten = 10 ** Math.floor(Math.log10(room));
    step = [1, 2, 5, 10].map((n) => n * ten).find((n) => n >= room);
    if (state.byPosition) step = Math.max(1, Math.round(step));
  }
  pen.font = `11px ${colours.font}`;
  pen.textBaseline = "alphabetic";
  pen.fillStyle = colours.mute;
  if (lanes.keys.length) {
    const what = state.byPosition ? "position" : time ? `${firstDay()} UTC` : axis.name;
    pen.textAlign = "left";
    pen.fillText(fitted(pen, what, GUTTER - 30), 14, 19);
  }
  let day = time ? firstDay() : null;
  for (let n = Math.ceil(state.from / step); n * step <= state.to; n++) {
    const x = toX(n * step);
    pen.fillStyle = colours.line;
    pen.fillRect(x, 0, 1, 5);
    pen.fillStyle = colours.soft;
    let words = time ? timeText(n * step) : String(Number((n * step).toPrecision(12)));
    if (time) {
      const [date, clock] = [words.slice(0, 10), words.slice(11)];
      const short = clock.replace(/:00$/, step >= 6e7 ? "" : ":00");
      // Without a gutter nothing else says the day.
      const first = !lanes.keys.length && n === Math.ceil(state.from / step);
      words = step >= 864e8 ? date : day !== date || first ? `${date} ${short}` : short;
      day = date;
    }
    pen.textAlign = "center";
    const half = pen.measureText(words).width / 2;
    pen.fillText(words, Math.max(half + 8, Math.min(width() - half - 6, x)), 19);
  }
}
const firstDay = () => timeText(Math.max(state.from, state.least)).slice(0, 10);

let asked = false;
function draw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    drawAll();
  });
}
function drawAll() {
  measured = 0;
  drawTimeline();
  drawHistogram();
  drawScale();
}
