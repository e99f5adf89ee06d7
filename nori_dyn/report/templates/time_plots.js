//<![CDATA[
"use strict";
// What the plots of a page share: a cursor with the numbers below it, and one part of the time that all of them show.
// The numbers are read from the paths as they are drawn; what is drawn is all that the page holds.
const SIZE = 10000;
const root = document.documentElement;
const log = JSON.parse(document.getElementById("log").textContent);
const bar = document.querySelector(".time");
const [now, reset] = [bar.querySelector("output"), bar.querySelector("button")];
const frames = [...document.querySelectorAll(".frame")];
let view = [0, SIZE];  // the part of the time that is shown, in units of the drawings
let from = null;  // where dragging began, as a share of the width
const followers = [];  // what is told at which time one points, in units of the drawings
const lines = new Map();  // the points of each path, once they were asked for

const points = path => {
  if (!lines.has(path)) {
    const found = [];
    let [x, y] = [0, 0];
    for (const [, step, a, b] of path.getAttribute("d").matchAll(/([Mlv])(-?\d+)(?: (-?\d+))?/g)) {
      if (step === "M") { [x, y] = [+a, +b]; } else if (step === "v") { y += +a; } else { x += +a; y += +b; }
      found.push([x, y]);
    }
    lines.set(path, found);
  }
  return lines.get(path);
};

const ticks = (low, high, about) => {
  const rough = (high - low) / about;
  const decade = 10 ** Math.floor(Math.log10(rough));
  const steps = [10, 5, 2, 1, 0.5, 0.2].map(factor => factor * decade);
  const widest = steps.findLast(each => each >= 0.999 * rough);
  const count = step => Math.floor(high / step + 1e-9) - Math.ceil(low / step - 1e-9) + 1;
  const step = steps.find(each => widest >= each && count(each) >= 3);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) {
    const plain = step > 1e-7 && Math.max(Math.abs(low), Math.abs(high)) < 1e6;
    found.push([k * step, plain ? (k * step).toFixed(decimals) : (k * step).toPrecision(3)]);
  }
  return found;
};

const put = (labels, found, side, share) => labels.replaceChildren(...found.map(([x, text]) => {
  const label = document.createElement("span");
  label.textContent = text;
  label.style[side] = `${100 * share(x)}%`;
  return label;
}));

const timeAt = x => log.span[0] + x / SIZE * (log.span[1] - log.span[0]);
const timeInWords = x => log.unit === "s" ? `t = ${timeAt(x).toFixed(3)} s` : `sample ${Math.round(timeAt(x))}`;
const isShown = frame => frame.getBoundingClientRect().height > 0;

const number = x => {
  const size = Math.abs(x);
  return size !== 0 && (size >= 1e6 || 1e-3 > size) ? x.toExponential(2) : String(+x.toPrecision(4));
};

const firstFrom = (found, x) => {  // the number of the first point at x or right of it
  let [low, high] = [0, found.length];
  while (high > low) {
    const middle = (low + high) >> 1;
    if (x > found[middle][0]) { low = middle + 1; } else { high = middle; }
  }
  return low;
};

const reach = frame => {  // the heights between which the lines lie in the part of the time that is shown
  let [top, bottom] = [Infinity, -Infinity];
  for (const path of frame.querySelectorAll("path.line")) {
    const found = points(path);
    const last = firstFrom(found, view[1]);
    for (let k = Math.max(0, firstFrom(found, view[0]) - 1); Math.min(last, found.length - 1) >= k; k++) {
      const y = found[k][1];
      if (top > y) { top = y; }
      if (y > bottom) { bottom = y; }
    }
  }
  return bottom >= top ? [top, bottom] : [0, SIZE];
};

const draw = () => {
  const [low, high] = [timeAt(view[0]), timeAt(view[1])];
  const isWhole = view[0] === 0 && view[1] === SIZE;
  const shown = new Set(frames.filter(isShown));  // asked before anything is changed: the page is laid out once
  const along = ticks(low, high, 5);
  for (const labels of document.querySelectorAll(".xs")) {
    put(labels, along, "left", t => (t - low) / (high - low));
  }
  for (const frame of frames) {
    const svg = frame.querySelector("svg");
    let [top, bottom] = [0, SIZE];
    if (frame.dataset.low !== undefined && shown.has(frame)) {
      if (!isWhole) {
        [top, bottom] = reach(frame);
        const room = Math.max(0.06 * (bottom - top), 2);
        [top, bottom] = [top - room, bottom + room];
      }
      const [least, most] = [+frame.dataset.low, +frame.dataset.high];
      const value = y => most - y / SIZE * (most - least);
      const [lowest, highest] = [value(bottom), value(top)];
      put(frame.querySelector(".ys"), ticks(lowest, highest, 4), "top", x => (highest - x) / (highest - lowest));
    }
    svg.setAttribute("viewBox", `${view[0]} ${top} ${view[1] - view[0]} ${bottom - top}`);
  }
  reset.disabled = isWhole;
};

const valueAt = (path, x, frame) => {
  const found = points(path);
  const k = firstFrom(found, x);
  const best = [found[k - 1], found[k]].filter(each => each)
    .reduce((a, b) => (a && Math.abs(a[0] - x) <= Math.abs(b[0] - x) ? a : b), null);
  const near = best !== null && Math.abs(best[0] - x) <= Math.max(60, 0.01 * (view[1] - view[0]));
  const [low, high] = [+frame.dataset.low, +frame.dataset.high];
  return near ? number(high - best[1] / SIZE * (high - low)) : "";
};

const point = share => {
  const x = view[0] + share * (view[1] - view[0]);
  root.style.setProperty("--at", share);
  root.classList.add("hovered");
  now.textContent = timeInWords(x);
  for (const follow of followers) { follow(x); }
  const seen = frames.filter(frame => {
    const box = frame.getBoundingClientRect();
    return frame.dataset.low !== undefined && box.height > 0 && innerHeight >= box.top && box.bottom >= 0;
  });
  for (const frame of seen) {
    const told = frame.parentElement.querySelectorAll(".key output");
    frame.querySelectorAll("path.line").forEach((path, k) => { told[k].textContent = valueAt(path, x, frame); });
  }
};

const leave = () => {
  root.classList.remove("hovered");
  now.textContent = "";
  for (const told of document.querySelectorAll(".key output")) { told.textContent = ""; }
};

const shareIn = (frame, event) => {
  const box = frame.querySelector("svg").getBoundingClientRect();
  return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
};

for (const frame of frames) {
  frame.addEventListener("pointerdown", event => {
    from = shareIn(frame, event);
    frame.setPointerCapture(event.pointerId);
  });
  frame.addEventListener("pointermove", event => {
    const share = shareIn(frame, event);
    point(share);
    if (from !== null) {
      root.style.setProperty("--from", Math.min(from, share));
      root.style.setProperty("--to", Math.max(from, share));
      root.classList.add("dragged");
    }
  });
  const stop = event => {
    root.classList.remove("dragged");
    const share = shareIn(frame, event);
    if (from !== null && event.type === "pointerup" && Math.abs(share - from) > 0.005) {
      const at = [from, share].sort((a, b) => a - b).map(each => view[0] + each * (view[1] - view[0]));
      if (at[1] - at[0] >= 20) { view = at; draw(); }
    }
    from = null;
  };
  frame.addEventListener("pointerup", stop);
  frame.addEventListener("pointercancel", stop);
  frame.addEventListener("pointerleave", leave);
  frame.addEventListener("dblclick", () => reset.click());
}
reset.addEventListener("click", () => { view = [0, SIZE]; draw(); });
addEventListener("keydown", event => { if (event.key === "Escape") { reset.click(); } });
for (const details of document.querySelectorAll("details")) { details.addEventListener("toggle", draw); }
bar.hidden = false;
//]]>
