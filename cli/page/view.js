// The scan, decoded, and the camera that looks at it. First of the parts of one script.
const scan = JSON.parse(document.getElementById("scan").textContent);
const element = (id) => document.getElementById(id);
const canvas = element("cloud");
const root = document.documentElement;
const kFieldOfView = 0.87;   // radians, from top to bottom
const kFocal = 1 / Math.tan(kFieldOfView / 2);
const format = (value) => value.toLocaleString("en-US");

const modes = ["height", "intensity"].filter((mode) => scan.scales[mode]);
if (scan.answers.length > 0) modes.push("label");
// Numbers of classes that are not shown: prediction and truth are in the same classes, errors are not.
const hiddenClasses = new Set(), hiddenVerdicts = new Set();
for (const answer of scan.answers) answer.hidden = answer.name === "error" ? hiddenVerdicts : hiddenClasses;

const state = {
  colour: modes.includes(scan.colour) ? scan.colour : "height",
  answer: 0,   // which of scan.answers is shown
  size: 0,     // a power of two
  rings: true,
  yaw: 0, pitch: 0, distance: 1, target: [0, 0, 0],
};

// ---- the scan ----

function decode(id) {
  const holder = element(id);
  const text = holder.textContent;
  holder.remove();
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = binary.charCodeAt(i);
  return bytes;
}
const positions = decode("positions");   // 3 x uint16 a point, little-endian as every GPU is
const intensity = decode("intensity");   // uint16 a point, or nothing
const kinds = decode("kinds");           // which class of it a point has, answer after answer; or nothing

// Everything drawn is relative to the centre: what is left fits into 32-bit floats.
const low = scan.low.map((value, axis) => value - scan.centre[axis]);
const radius = Math.max(scan.reach, Math.hypot(...low.map((value, axis) =>
  Math.max(Math.abs(value), Math.abs(value + 65535 * scan.step[axis])))));

const answer = () => scan.answers[state.answer] || {name: "", classes: [], hidden: hiddenClasses};

function drawnPoints() {
  return answer().classes.reduce((left, {number, points}) =>
    answer().hidden.has(number) ? left - points : left, scan.points);
}

// ---- colours ----

const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

/// As WCAG defines it, 0 to 1.
function luminance(colour) {
  const [r, g, b] = colour.map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

const kGrounds = {dark: [11, 14, 20], light: [230, 234, 240]};   // as --ground in the style
const kContrast = 2.4;   // of every point against the ground it lies on

/// The colour as it is shown: away from the ground, step by step, where it would be lost on it.
function visible(hex) {
  const light = root.dataset.theme === "light";
  const ground = luminance(kGrounds[light ? "light" : "dark"]);
  let colour = channels(hex);
  if (light) colour = colour.map((value) => 0.8 * value);
  const lost = () => {
    const own = luminance(colour);
    return (Math.max(own, ground) + 0.05) / (Math.min(own, ground) + 0.05) < kContrast;
  };
  for (let step = 0; step < 40 && lost(); ++step) {
    colour = colour.map((value) => light ? 0.95 * value : value + 0.05 * (255 - value));
  }
  return colour.map(Math.round);
}

const css = (hex) => `rgb(${visible(hex).join(" ")})`;

// ---- the camera ----

function resetView() {
  Object.assign(state, {yaw: 0.21, pitch: 0.56, distance: 1.15 * scan.reach,
                        target: [0.1 * scan.reach, 0, 0]});
  request();
}

function viewFromAbove() {
  Object.assign(state, {yaw: 0, pitch: Math.PI / 2, distance: 2 * scan.reach, target: [0, 0, 0]});
  request();
}

/// Right, up, ahead.
function axes() {
  const [cy, sy, cp, sp] =
    [Math.cos(state.yaw), Math.sin(state.yaw), Math.cos(state.pitch), Math.sin(state.pitch)];
  return [[sy, -cy, 0], [cy * sp, sy * sp, cp], [cy * cp, sy * cp, -sp]];
}

/// Metres a CSS pixel, where the target is.
const pixelSize = () => 2 * state.distance / (kFocal * Math.max(canvas.clientHeight, 1));

function turn(dx, dy) {
  state.yaw = (state.yaw - dx) % (2 * Math.PI);
  state.pitch = Math.min(Math.PI / 2, Math.max(-Math.PI / 2, state.pitch + dy));
  request();
}

function move(dx, dy) {
  const [right, up] = axes();
  const step = pixelSize();
  state.target = state.target.map((value, i) => value + (up[i] * dy - right[i] * dx) * step);
  request();
}

/// Around a place on the canvas, in pixels from the middle of the view; what is there stays there.
function zoom(factor, x = 0, y = 0) {
  const distance = Math.min(8 * radius, Math.max(1e-3 * scan.reach, state.distance * factor));
  const done = 1 - distance / state.distance;
  const [right, up] = axes();
  const step = pixelSize();
  state.target = state.target.map((value, i) => value + (right[i] * x - up[i] * y) * step * done);
  state.distance = distance;
  request();
}

/// Where the middle of the view is: that of what the panel leaves free, -1 to 1.
function middle() {
  const panel = element("panel");
  if (panel.hidden) return [0, 0];
  if (innerWidth > 560) return [-(panel.offsetWidth + 12) / innerWidth, 0];
  return [0, (panel.offsetHeight + 8) / innerHeight];
}

/// World to clip space, column by column, and the distances that it maps.
function projection() {
  const [right, up, ahead] = axes();
  const eye = state.target.map((value, i) => value - ahead[i] * state.distance);
  const far = Math.hypot(...eye) + 1.5 * radius;
  const near = Math.max(0.01 * state.distance, 1e-5 * far);
  const [mx, my] = middle();
  const aspect = canvas.width / canvas.height;
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const rows = [right.map((value, i) => value * kFocal / aspect + ahead[i] * mx),
                up.map((value, i) => value * kFocal + ahead[i] * my),
                ahead.map((value) => value * (far + near) / (far - near)), ahead];
  const matrix = new Float32Array(16);
  rows.forEach((row, r) => {
    for (let c = 0; c < 3; ++c) matrix[4 * c + r] = row[c];
    matrix[12 + r] = -dot(row, eye);
  });
  matrix[14] -= 2 * far * near / (far - near);
  return {matrix, near, far};
}
