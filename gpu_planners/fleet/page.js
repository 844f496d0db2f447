"use strict";
// Plays the moves of a fleet on a canvas. FLEET holds the map, places, headings and goals; see drawing.py.

function bytes(text) {
  const raw = atob(text), out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out;
}

const { rows, cols } = FLEET;
const blocked = bytes(FLEET.map);
const COLOURS = { moving: "#2173d9", waits: "#8a93a6", there: "#2fa24f", idle: "#c3c6cd" };
const AIM = "#ed8c1a", TRAIL = 30;
let moves, steps, agents, places, headings, changes, many, half;
let goalOf; // of each agent at each step: an index of `changes`
let reached; // how many goals have been reached until each step

function load(data) {
  ({ steps, agents } = moves = data);
  half = steps * agents;
  places = new Int16Array(bytes(data.places).buffer); // rows of all steps and agents, then columns
  headings = bytes(data.headings);
  changes = new Int32Array(bytes(data.goals).buffer);
  many = changes.length / 4;
  goalOf = new Int32Array(half).fill(-1);
  reached = new Int32Array(steps);
  const latest = new Int32Array(agents).fill(-1), counted = new Int32Array(agents).fill(-1);
  for (let step = 0, k = 0, sum = 0; step < steps; step++) {
    for (; k < many && changes[k] === step; k++) latest[changes[many + k]] = k;
    goalOf.set(latest, step * agents);
    for (let agent = 0; agent < agents; agent++) {
      if (latest[agent] >= 0 && latest[agent] !== counted[agent] && isThere(step, agent)) {
        counted[agent] = latest[agent];
        sum++;
      }
    }
    reached[step] = sum;
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
const x = (col) => (col + 0.5) * scale, y = (row) => ((FLEET.below ? rows - 1 - row : row) + 0.5) * scale;
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
      paint.fillRect(x(col) - scale / 2, y(row) - scale / 2, scale + 0.5, scale + 0.5);
    }
  }
  paintPicture();
}
function paintPicture() {
  if (!moves.picture) return;
  const image = new Image();
  image.onload = () => { ground.getContext("2d").drawImage(image, 0, 0, ground.width, ground.height); show(); };
  image.setAttribute("src", moves.picture);
}

function line(points, style, width) {
  draw.strokeStyle = style;
  draw.lineWidth = width;
  draw.beginPath();
  points.forEach(([row, col], i) => { if (i) draw.lineTo(x(col), y(row)); else draw.moveTo(x(col), y(row)); });
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
      draw.fillStyle = AIM;
      draw.fillRect(x(aim[1]) - 0.35 * scale, y(aim[0]) - 0.35 * scale, 0.7 * scale, 0.7 * scale);
    }
  }
  const side = 0.76 * scale;
  for (let agent = 0; agent < agents; agent++) {
    const here = between(time, agent);
    if (!here) continue;
    const left = x(here[1]) - side / 2, top = y(here[0]) - side / 2;
    draw.fillStyle = colour(time, agent);
    draw.fillRect(left, top, side, side);
    if (FLEET.turning && scale >= 4) {
      const angle = (here[2] * Math.PI) / 2;
      const nose = [here[0] + 0.38 * Math.sin(angle), here[1] + 0.38 * Math.cos(angle)];
      line([here, nose], "#ffffff", Math.max(1, 0.14 * scale));
    }
    if (agent === followed) {
      draw.strokeStyle = AIM;
      draw.lineWidth = Math.max(2, 0.16 * scale);
      draw.strokeRect(left, top, side, side);
    }
  }
  if (moves.aim) {
    draw.fillStyle = AIM;
    draw.strokeStyle = "#ffffff";
    draw.lineWidth = 2;
    draw.beginPath();
    draw.arc(x(moves.aim[1]), y(moves.aim[0]), grip(), 0, 2 * Math.PI);
    draw.fill();
    draw.stroke();
  }
  const seconds = time * FLEET.stepSeconds;
  document.getElementById("clock").textContent =
    `${seconds.toFixed(1)} s of ${((steps - 1) * FLEET.stepSeconds).toFixed(0)} s, ${reached[step]} goals reached`;
  const slider = document.getElementById("time");
  slider.max = steps - 1;
  slider.value = String(time);
  if (followed < 0) {
    if (moves.text) document.getElementById("told").textContent = moves.text;
  } else {
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
    if (time >= steps - 1) atEnd();
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
function tile(event) {
  const box = canvas.getBoundingClientRect(), down = ((event.clientY - box.top) / box.height) * rows - 0.5;
  return [FLEET.below ? rows - 1 - down : down, ((event.clientX - box.left) / box.width) * cols - 0.5];
}
canvas.addEventListener("click", (event) => {
  if (dragged) { dragged = false; return; }
  const [row, col] = tile(event);
  let best = 2.5;
  followed = -1;
  for (let agent = 0; agent < agents; agent++) {
    const here = between(time, agent);
    const far = here ? Math.hypot(here[0] - row, here[1] - col) : Infinity;
    if (far < best) { best = far; followed = agent; }
  }
  show();
});

// A page with a server: FLEET.live is "goal", which can be dragged, or "errands", of which more come as they are played.
let asked = null, asking = false, coming = null, dragged = false;
const grip = () => Math.max(6, 0.6 * scale);

async function ask(query) {
  const answer = await fetch(`moves${query}`);
  const data = await answer.json();
  if (answer.ok) return data;
  document.getElementById("told").textContent = moves.text = data.text;
  throw new Error(data.text);
}
async function askForGoal(aim, held) {
  asked = [aim, held];
  if (asking) return; // the newest is asked for when the answer to another one is there
  asking = true;
  try {
    while (asked) {
      const [[row, col], some] = asked;
      asked = null;
      const data = await ask(`?row=${row}&col=${col}&held=${some}`);
      if (!asked) load(data);
      time = Math.min(time, steps - 1);
      paintPicture();
      show();
    }
  } finally { asking = false; }
}
function askForMore() {
  coming = null;
  ask("").then((data) => { coming = data; });
}
function atEnd() {
  if (FLEET.live === "goal") time = 0;
  else if (!FLEET.live) { time = steps - 1; setPlaying(false); }
  else if (!coming) time = steps - 1;
  else { load(coming); time = 0; askForMore(); }
}
if (FLEET.live === "goal") {
  let held = false;
  canvas.style.touchAction = "none"; // a finger that drags the goal does not scroll
  const move = (event, still) => {
    dragged = true;
    moves.aim = tile(event);
    askForGoal(moves.aim.map(Math.round), still);
    show();
  };
  canvas.addEventListener("pointerdown", (event) => {
    const [row, col] = tile(event), [aimRow, aimCol] = moves.aim;
    held = Math.hypot(row - aimRow, col - aimCol) * scale < 3 * grip();
    if (held) canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => { if (held) move(event, true); });
  canvas.addEventListener("pointerup", (event) => { if (held) { held = false; move(event, false); } });
}
window.addEventListener("resize", () => { fit(); show(); });
document.getElementById("key").innerHTML = [["moving", "moves"], ["waits", "waits"], ["there", "at its goal"], ["idle", "no goal"]]
  .map(([name, text]) => `<span style="background:${COLOURS[name]}"></span>${text}`).join("");
load(FLEET);
fit();
show();
if (FLEET.live === "goal") askForGoal(moves.aim, false);
if (FLEET.live === "errands") askForMore();
requestAnimationFrame((now) => { last = now; frame(now); });
