(() => {
  const data = JSON.parse(byId("data").textContent);
  const { events, matches, lanes, types, axis } = data;
  const shownEvents = events.x.length;
  const shownMatches = matches.lane.length;
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
  for (const lane of matches.lane) laneOrder[lane].matches++;
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
    const gap = 7 / scaleOf();
    const shown = state.matchedOnly ? [...matchedLanes].sort((a, b) => a - b) : laneOrder.map((_, n) => n);
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
  const width = () => timeline.clientWidth || 800;
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
        const all = shownMatches === matches.count;
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
    pen.fillStyle = colours.bar;
    pen.globalAlpha = Math.max(0.06, Math.min(0.5, 4 / lane.crowd.length));
    for (const match of lane.crowd) {
      const [from, to] = ends(match);
      if (to < state.from || from > state.to) continue;
      const x = Math.max(toX(from), -4);
      pen.fillRect(x, top + PAD, Math.max(2, Math.min(toX(to), width() + 4) - x), STRIP - 4);
      state.barsDrawn++;
    }
    pen.globalAlpha = 1;
  }

  const barY = (lane, match) => (lane.track.has(match)
    ? lane.bandsTop + lane.track.get(match) * TRACK + TRACK / 2 : PAD + (STRIP - 4) / 2);

  function drawBars(pen, lane, top) {
    const xs = marksX();
    for (const track of lane.tracks) {
      for (let n = Math.max(0, firstAt(track, (m) => ends(m)[1], state.from)); n < track.length; n++) {
        const match = track[n];
        const [from, to] = ends(match);
        if (from > state.to) break;
        const y = top + barY(lane, match);
        const x = Math.max(toX(from), -20), stop = Math.min(toX(to), width() + 20);
        const dim = state.selected >= 0 && match !== state.selected;
        const mark = match === state.selected || (state.hovered && state.hovered.match === match);
        pen.globalAlpha = dim && !mark ? 0.4 : 1;
        pen.fillStyle = mark ? colours.accent : colours.bar;
        pen.beginPath();
        pen.roundRect(x - 2.5, y - 2.5, stop - x + 5, 5, 2.5);
        pen.fill();
        state.barsDrawn++;
        if ((stop - x) / Math.max(1, matches.offsets[match + 1] - matches.offsets[match]) > 7) {
          for (let e = matches.offsets[match]; e < matches.offsets[match + 1]; e++) {
            const event = matches.events[e];
            pen.fillStyle = colourOf(events.type[event]);
            pen.beginPath();
            pen.arc(toX(xs[event]), y, 2.4, 0, 7);
            pen.fill();
          }
        }
      }
    }
    pen.globalAlpha = 1;
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
    drawTimeline();
    drawHistogram();
    drawScale();
  }

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
      const [one, many] = data.words;
      return [node("strong", {}, `${plural(found.crowd.length, one, many)} more here`),
        node("div", {}, "Zoom in to see each of them.")];
    }
    const pairs = matches.columns.filter((c) => !lanes.keys.some((k) => k.name === c.name))
      .slice(0, 14).map((c) => [c.name, text(c, found.match)]);
    return [node("strong", {}, `${data.words[0]} ${count(found.match + 1)}`), facts(pairs)];
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
    byId("facts-name").textContent = match < 0 ? "Selected" : `Selected: ${data.words[0]} ${count(match + 1)}`;
    if (match < 0) {
      box.replaceChildren(node("p", { class: "none" }, shownMatches
        ? `Choose a ${data.words[0]} in the list or on the timeline.` : "Nothing to select."));
      return;
    }
    const pairs = matches.columns.filter((c) => c.kind !== "label").map((c) => [c.name, text(c, match)]);
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
    byId("found").textContent = words.length ? `${count(found.length)} of ${plural(shownMatches, one, many)}` : "";
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
      shownMatches < matches.count ? `showing ${count(shownMatches)} of ${count(matches.count)} ${many}` : plural(matches.count, one, many),
    ];
    if (lanes.keys.length) told.push(plural(lanes.count, "partition", "partitions"));
    if (axis.kind === "time") told.push("times in UTC");
    byId("summary").textContent = told.join(" · ");
    byId("notes").replaceChildren(...data.notes.map((note) => node("li", {}, note)));
    byId("rows-name").textContent = many.charAt(0).toUpperCase() + many.slice(1);
    if (data.text) {
      byId("query").hidden = false;
      byId("text").textContent = data.text;
    }
    timeline.setAttribute("aria-label", `Timeline of ${told.join(", ")}. The list below has all that it shows of ${many}.`);
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
  byId("matched").addEventListener("change", (e) => {
    state.matchedOnly = e.target.checked;
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
      events: events.count, eventsShown: shownEvents, matches: matches.count, matchesShown: shownMatches,
      partitions: lanes.count, lanes: state.lanes.length, marksDrawn: state.marksDrawn, barsDrawn: state.barsDrawn,
      rows: state.order.length, selected: state.selected,
      selectedEvents: state.selected < 0 ? [] : eventsOf(state.selected).map(([n]) => n),
    }),
    order: () => [...state.order], view: () => [state.from, state.to], drawNow: drawAll, placeOfEvent, placeOfMatch, select,
  };
})();
