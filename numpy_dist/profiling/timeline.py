"""The script of the page: draws the timeline on a canvas, zooms, moves, and tells what was clicked on."""

SCRIPT = r"""
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const canvas = document.getElementById("timeline"), told = document.getElementById("told");
const context = canvas.getContext("2d");
const ROW = 15, LEFT = 76, TOP = 20, GAP = 8, LEAST = 1000;
let begin = 0, length = data.length, chosen = null, dragged = null;

const rows = [];  // of each rank: where it is drawn, and how deep its spans lie
let height = TOP;
for (const rank of data.ranks) {
  const depth = 1 + Math.max(0, ...new Set(rank.spans.map(span => span[2])));
  rows.push({name: rank.name, label: rank.label, spans: rank.spans, top: height});
  height += depth * ROW + GAP;
}

const width = () => canvas.clientWidth - LEFT;
const place = time => LEFT + (time - begin) / length * width();
const timeAt = x => begin + (x - LEFT) / width() * length;

function words(nanoseconds) {
  for (const [size, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]])
    if (Math.abs(nanoseconds) >= size) return +(nanoseconds / size).toPrecision(4) + " " + unit;
  return nanoseconds ? Math.round(nanoseconds) + " ns" : "0";
}

function draw() {
  const scale = window.devicePixelRatio || 1;
  canvas.width = canvas.clientWidth * scale;
  canvas.height = height * scale;
  canvas.style.height = height + "px";
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, canvas.clientWidth, height);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  drawTimes();
  for (const row of rows) {
    context.fillStyle = "#222";
    context.fillText(row.label, 4, row.top + ROW / 2);
    for (const span of row.spans) drawSpan(row, span);
  }
}

function drawTimes() {
  let step = Math.pow(10, Math.floor(Math.log10(length / 4)));
  if (length / step > 20) step *= 5; else if (length / step > 10) step *= 2;
  context.fillStyle = "#666";
  context.strokeStyle = "#eee";
  for (let time = Math.ceil(begin / step) * step; time <= begin + length; time += step) {
    const x = place(time);
    context.beginPath(); context.moveTo(x, TOP - 4); context.lineTo(x, height); context.stroke();
    context.fillText(words(time), x + 2, 8);
  }
}

function drawSpan(row, span) {
  const from = Math.max(LEFT, place(span[0])), to = Math.min(canvas.clientWidth, place(span[0] + span[1]));
  if (to < LEFT || from > canvas.clientWidth) return;
  const y = row.top + span[2] * ROW;
  context.fillStyle = data.colours[span[3]];
  context.fillRect(from, y, Math.max(0.7, to - from), ROW - 2);
  if (span === chosen) { context.strokeStyle = "#000"; context.strokeRect(from, y, Math.max(1, to - from), ROW - 2); }
  if (to - from > 60) {
    context.save();
    context.beginPath(); context.rect(from, y, to - from, ROW); context.clip();
    context.fillStyle = "#fff";
    context.fillText(data.texts[span[4]], from + 3, y + ROW / 2 - 1);
    context.restore();
  }
}

function zoom(factor, time) {
  const wanted = Math.min(data.length, Math.max(LEAST, length * factor));
  move(time - (time - begin) * wanted / length, wanted);
}

function move(to, wanted) {
  length = wanted;
  begin = Math.min(Math.max(0, to), data.length - length);
  draw();
}

function at(x, y) {
  let found = null, nearest = 3;  // pixels beside it
  for (const row of rows) for (const span of row.spans) {
    const top = row.top + span[2] * ROW;
    if (y < top || y >= top + ROW) continue;
    const away = Math.max(place(span[0]) - x, x - place(span[0] + span[1]), 0);
    if (away <= nearest) { nearest = away; found = [row, span]; }
  }
  return found;
}

function tell(found) {
  chosen = found && found[1];
  if (found) {
    const [row, span] = found;
    told.textContent = `${row.name}, ${data.kinds[span[3]]}, from ${words(span[0])} for ${words(span[1])}\n` +
      data.texts[span[4]];
  } else told.textContent = "Nothing there: no array program ran there.";
  draw();
}

canvas.addEventListener("wheel", event => {
  event.preventDefault();
  zoom(event.deltaY < 0 ? 0.7 : 1 / 0.7, timeAt(event.offsetX));
}, {passive: false});
canvas.addEventListener("mousedown", event => { dragged = {x: event.offsetX, begin, moved: false}; });
window.addEventListener("mouseup", () => { setTimeout(() => { dragged = null; }); });
canvas.addEventListener("mousemove", event => {
  if (!dragged) return;
  const by = event.offsetX - dragged.x;
  if (Math.abs(by) > 3) dragged.moved = true;
  if (dragged.moved) move(dragged.begin - by / width() * length, length);
});
canvas.addEventListener("click", event => {
  if (!dragged || !dragged.moved) tell(at(event.offsetX, event.offsetY));
});
document.getElementById("in").onclick = () => zoom(0.5, begin + length / 2);
document.getElementById("out").onclick = () => zoom(2, begin + length / 2);
document.getElementById("all").onclick = () => move(0, data.length);
window.addEventListener("resize", draw);
draw();
"""
