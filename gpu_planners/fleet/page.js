"use strict";
// Plays the moves of a fleet on a canvas. FLEET holds the map, places, headings and goals; see drawing.py.

function bytes(text) {
  const raw = atob(text), out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out;
}

const { rows, cols, steps, agents } = FLEET;
const blocked = bytes(FLEET.map);
const places = new Int16Array(bytes(FLEET.places).buffer); // rows of all steps and agents, then columns
const headings = bytes(FLEET.headings);
const changes = new Int32Array(bytes(FLEET.goals).buffer);
const many = changes.length / 4;
const half = steps * agents;
const COLOURS = { moving: "#2173d9", waits: "#8a93a6", there: "#2fa24f", idle: "#c3c6cd" };
const TRAIL = 30;

// goal of each agent at each step: an index of `changes`, and how many goals have been reached until then
const goalOf = new Int32Array(half).fill(-1);
{
  const latest = new Int32Array(agents).fill(-1);
  let k = 0;
  for (let step = 0; step < steps; step++) {
    for (; k < many && changes[k] === step; k++) latest[changes[many + k]] = k;
    goalOf.set(latest, step * agents);
  }
}
function goal(step, agent) {
  const k = goalOf[step * agents + agent];
  return k < 0 || changes[2 * many + k] < 0 ? null : [changes[2 * many + k], changes[3 * many + k]];
}
function place(step, agent) {
  const i = step * agents + agent;
  return [places[i], places[half + i]];
}
function isThere(step, agent) {
  const aim = goal(step, agent), [row, col] = place(step, agent);
  return aim !== null && aim[0] === row && aim[1] === col;
}
const reached = new Int32Array(steps);
{
  const counted = new Int32Array(agents).fill(-1);
  for (let step = 0, sum = 0; step < steps; step++) {
    for (let agent = 0; agent < agents; agent++) {
      const k = goalOf[step * agents + agent];
      if (k >= 0 && k !== counted[agent] && isThere(step, agent)) { counted[agent] = k; sum++; }
    }
    reached[step] = sum;
  }
}

// where an agent is at a time between steps: [row, col, quarter turns], or null where it is not there
function between(time, agent) {
  const step = Math.min(Math.floor(time), steps - 1), next = Math.min(step + 1, steps - 1), share = time - step;
  const [r, c] = place(step, agent), [r2, c2] = place(next, agent);
  if (r < 0) return null;
  const h = headings[step * agents + agent];
  let turn = (headings[next * agents + agent] - h + 4) % 4;
  if (turn === 3) turn = -1;
  const far = r2 < 0 || Math.abs(r2 - r) + Math.abs(c2 - c) > 1;
  return far ? [r, c, h] : [r + (r2 - r) * share, c + (c2 - c) * share, h + turn * share];
}
function colour(time, agent) {
  const step = Math.min(Math.floor(time), steps - 1), next = Math.min(step + 1, steps - 1);
  if (isThere(step, agent)) return COLOURS.there;
  if (goal(step, agent) === null) return COLOURS.idle;
  const [r, c] = place(step, agent), [r2, c2] = place(next, agent);
  const turns = headings[step * agents + agent] !== headings[next * agents + agent];
  return r !== r2 || c !== c2 || turns ? COLOURS.moving : COLOURS.waits;
}

const canvas = document.getElementById("map"), draw = canvas.getContext("2d");
const ground = document.createElement("canvas");
let scale = 1, time = 0, playing = true, followed = -1, last = 0;

function fit() {
  const width = Math.max(300, canvas.clientWidth || 1200) * (window.devicePixelRatio || 1);
  scale = Math.max(1, width / cols);
  for (const each of [canvas, ground]) {
    each.width = Math.round(cols * scale);
    each.height = Math.round(rows * scale);
  }
  const paint = ground.getContext("2d");
  paint.fillStyle = "#fbfaf7";
  paint.fillRect(0, 0, ground.width, ground.height);
  paint.fillStyle = "#3a4152";
  for (let tile = 0; tile < rows * cols; tile++) {
    if (blocked[tile >> 3] & (128 >> (tile & 7))) {
      const row = Math.floor(tile / cols), col = tile % cols;
      paint.fillRect(col * scale, row * scale, scale + 0.5, scale + 0.5);
    }
  }
}

function line(points, style, width) {
  draw.strokeStyle = style;
  draw.lineWidth = width;
  draw.beginPath();
  points.forEach(([row, col], i) => {
    const x = (col + 0.5) * scale, y = (row + 0.5) * scale;
    if (i) draw.lineTo(x, y); else draw.moveTo(x, y);
  });
  draw.stroke();
}

function show() {
  const step = Math.min(Math.floor(time), steps - 1);
  draw.drawImage(ground, 0, 0);
  if (followed >= 0) {
    const aim = goal(step, followed), here = between(time, followed);
    if (here) {
      const trail = [];
      for (let s = Math.max(0, step - TRAIL); s <= step; s++) if (place(s, followed)[0] >= 0) trail.push(place(s, followed));
      line([...trail, here], "rgba(33, 115, 217, 0.55)", Math.max(2, 0.25 * scale));
      if (aim) line([here, aim], "rgba(237, 140, 26, 0.9)", Math.max(1.5, 0.15 * scale));
    }
    if (aim) {
      draw.fillStyle = "#ed8c1a";
      draw.fillRect((aim[1] + 0.15) * scale, (aim[0] + 0.15) * scale, 0.7 * scale, 0.7 * scale);
    }
  }
  const side = 0.76 * scale;
  for (let agent = 0; agent < agents; agent++) {
    const here = between(time, agent);
    if (!here) continue;
    const x = (here[1] + 0.5) * scale, y = (here[0] + 0.5) * scale, angle = (here[2] * Math.PI) / 2;
    draw.fillStyle = colour(time, agent);
    draw.fillRect(x - side / 2, y - side / 2, side, side);
    if (FLEET.turning && scale >= 4) {
      draw.strokeStyle = "#ffffff";
      draw.lineWidth = Math.max(1, 0.14 * scale);
      draw.beginPath();
      draw.moveTo(x, y);
      draw.lineTo(x + 0.38 * scale * Math.cos(angle), y + 0.38 * scale * Math.sin(angle));
      draw.stroke();
    }
    if (agent === followed) {
      draw.strokeStyle = "#ed8c1a";
      draw.lineWidth = Math.max(2, 0.16 * scale);
      draw.strokeRect(x - side / 2, y - side / 2, side, side);
    }
  }
  const seconds = time * FLEET.stepSeconds;
  document.getElementById("clock").textContent =
    `${seconds.toFixed(1)} s of ${((steps - 1) * FLEET.stepSeconds).toFixed(0)} s, ${reached[step]} goals reached`;
  document.getElementById("time").value = String(time);
  if (followed >= 0) {
    const [row, col] = place(step, followed), aim = goal(step, followed);
    document.getElementById("told").textContent =
      `Agent ${followed} at row ${row}, column ${col}` +
      (isThere(step, followed) ? ", its goal." : aim ? `, on its way to row ${aim[0]}, column ${aim[1]}.` : ".");
  }
}

function frame(now) {
  const speed = Number(document.getElementById("speed").value);
  if (playing) {
    time += (Math.min(now - last, 100) / 1000) * speed / FLEET.stepSeconds;
    if (time >= steps - 1) { time = steps - 1; setPlaying(false); }
    show();
  }
  last = now;
  requestAnimationFrame(frame);
}
function setPlaying(value) {
  if (value && time >= steps - 1) time = 0;
  playing = value;
  document.getElementById("play").textContent = value ? "Pause" : "Play";
}

document.getElementById("play").addEventListener("click", () => setPlaying(!playing));
document.getElementById("time").addEventListener("input", (event) => {
  setPlaying(false);
  time = Number(event.target.value);
  show();
});
document.addEventListener("keydown", (event) => {
  if (event.code === "Space") { event.preventDefault(); setPlaying(!playing); }
});
canvas.addEventListener("click", (event) => {
  const box = canvas.getBoundingClientRect();
  const row = ((event.clientY - box.top) / box.height) * rows - 0.5;
  const col = ((event.clientX - box.left) / box.width) * cols - 0.5;
  let best = 2.5;
  followed = -1;
  for (let agent = 0; agent < agents; agent++) {
    const here = between(time, agent);
    const far = here ? Math.hypot(here[0] - row, here[1] - col) : Infinity;
    if (far < best) { best = far; followed = agent; }
  }
  show();
});
window.addEventListener("resize", () => { fit(); show(); });
document.getElementById("key").innerHTML = [["moving", "moves"], ["waits", "waits"], ["there", "at its goal"], ["idle", "no goal"]]
  .map(([name, text]) => `<span style="background:${COLOURS[name]}"></span>${text}`).join("");
fit();
show();
requestAnimationFrame((now) => { last = now; frame(now); });
