// Draws the points with WebGL2: into a texture first, then onto the page with edges shaded by depth.
// What was drawn is written to the canvas: data-points, data-colour, data-view.

const kPoints = `#version 300 es
precision highp float;
layout(location = 0) in vec3 place;
layout(location = 1) in float value;
layout(location = 2) in uint kind;
uniform mat4 matrix;
uniform vec3 low, unit;
uniform vec2 heights;      // the ends of the scale
uniform vec3 pixels;       // of a point one metre away; at least; at most
uniform int colouring;
uniform sampler2D scale, classes;
out vec3 colour;
void main() {
  vec3 at = low + place * unit;
  gl_Position = matrix * vec4(at, 1);
  gl_PointSize = clamp(pixels.x / gl_Position.w, pixels.y, pixels.z);
  vec4 own = texelFetch(classes, ivec2(kind, 0), 0);
  float part = colouring == 0 ? (at.z - heights.x) / (heights.y - heights.x) : value;
  part = (0.5 + clamp(part, 0., 1.) * 31.) / 32.;
  colour = colouring == 2 ? own.rgb : texture(scale, vec2(part, 0.5)).rgb;
  if (own.a == 0.) gl_Position = vec4(2, 2, 2, 1);
}`;
const kDisc = `#version 300 es
precision highp float;
in vec3 colour;
out vec4 result;
void main() {
  vec2 from = gl_PointCoord - 0.5;
  if (dot(from, from) > 0.27) discard;
  result = vec4(colour, 1);
}`;
const kLines = `#version 300 es
precision highp float;
layout(location = 0) in vec2 place;
uniform mat4 matrix;
void main() { gl_Position = matrix * vec4(place, 0, 1); }`;
const kPlain = `#version 300 es
precision highp float;
uniform vec4 colour;
out vec4 result;
void main() { result = colour; }`;
const kWhole = `#version 300 es
void main() {
  gl_Position = vec4(gl_VertexID == 1 ? 3 : -1, gl_VertexID == 2 ? 3 : -1, 0, 1);
}`;
const kShade = `#version 300 es
precision highp float;
uniform sampler2D colours;
uniform highp sampler2D depths;
uniform vec2 range;        // near, far
uniform float reach;       // pixels
out vec4 result;
float log_depth(ivec2 at) {
  float z = texelFetch(depths, at, 0).r;
  return log2(range.x * range.y / (range.y - z * (range.y - range.x)));
}
void main() {
  ivec2 here = ivec2(gl_FragCoord.xy), last = textureSize(depths, 0) - 1;
  float own = log_depth(here), nearer = 0.;
  for (int i = 0; i < 8; ++i) {
    float angle = 0.7853982 * float(i);
    ivec2 there = here + ivec2(round(reach * vec2(cos(angle), sin(angle))));
    nearer += clamp(own - log_depth(clamp(there, ivec2(0), last)), 0., 0.5);
  }
  result = vec4(texelFetch(colours, here, 0).rgb * max(exp(-1.5 * nearer), 0.3), 1);
}`;

let gl = null;
let scene = null;   // what lies on the GPU

function program(vertex, fragment) {
  const made = gl.createProgram();
  for (const [type, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(type);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(made, shader);
  }
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS) && !gl.isContextLost()) {
    throw new Error(gl.getProgramInfoLog(made) || "its shaders do not compile");
  }
  const uniforms = {};
  for (let i = gl.getProgramParameter(made, gl.ACTIVE_UNIFORMS) - 1; i >= 0; --i) {
    const name = gl.getActiveUniform(made, i).name;
    uniforms[name] = gl.getUniformLocation(made, name);
  }
  return {made, uniforms};
}

function texture(filter) {
  const made = gl.createTexture();
  gl.bindTexture(gl.TEXTURE_2D, made);
  for (const side of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) {
    gl.texParameteri(gl.TEXTURE_2D, side, gl.CLAMP_TO_EDGE);
  }
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, filter);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, filter);
  return made;
}

/// A row of colours as a texture.
function palette(filter, colours) {
  const made = texture(filter);
  gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, colours.length, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE,
                new Uint8Array(colours.flat()));
  return made;
}

function paintClasses() {
  if (scene === null) return;
  gl.deleteTexture(scene.classes);
  const {classes, hidden} = answer();
  scene.classes = palette(gl.NEAREST, classes.length === 0 ? [[255, 255, 255, 255]] :
    classes.map(({colour, number}) => [...visible(colour), hidden.has(number) ? 0 : 255]));
}

function paintScales() {
  if (scene === null) return;
  for (const [mode, {colours}] of Object.entries(scan.scales)) {
    gl.deleteTexture(scene.scales[mode] || null);
    scene.scales[mode] = palette(gl.LINEAR, colours.map((hex) => [...visible(hex), 255]));
  }
}

/// Which of the answers colours the points.
function useAnswer() {
  if (scene === null || kinds.length === 0) return;
  gl.bindVertexArray(scene.cloud);
  gl.bindBuffer(gl.ARRAY_BUFFER, scene.kinds);
  gl.vertexAttribIPointer(2, 1, gl.UNSIGNED_BYTE, 0, state.answer * scan.points);
  gl.bindVertexArray(null);
}

/// The buffer that now holds `bytes`.
function attribute(place, bytes, describe) {
  if (bytes.length === 0) return null;
  const buffer = gl.createBuffer();
  gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
  gl.bufferData(gl.ARRAY_BUFFER, bytes, gl.STATIC_DRAW);
  gl.enableVertexAttribArray(place);
  describe();
  return buffer;
}

function build() {
  scene = {points: program(kPoints, kDisc), lines: program(kLines, kPlain),
           shade: program(kWhole, kShade), scales: {}, width: 0, height: 0};
  paintScales();
  paintClasses();
  scene.cloud = gl.createVertexArray();
  gl.bindVertexArray(scene.cloud);
  attribute(0, positions, () => gl.vertexAttribPointer(0, 3, gl.UNSIGNED_SHORT, false, 0, 0));
  attribute(1, intensity, () => gl.vertexAttribPointer(1, 1, gl.UNSIGNED_SHORT, true, 0, 0));
  scene.kinds = attribute(2, kinds, () =>
    gl.vertexAttribIPointer(2, 1, gl.UNSIGNED_BYTE, 0, state.answer * scan.points));
  if (kinds.length === 0) gl.vertexAttribI4ui(2, 0, 0, 0, 0);
  const circles = [];
  const corner = (r, i) => [r * Math.cos(Math.PI * i / 120), r * Math.sin(Math.PI * i / 120)];
  for (let r = scan.ring; r <= 1.5 * scan.reach; r += scan.ring) {
    for (let i = 0; i < 240; ++i) circles.push(...corner(r, i), ...corner(r, i + 1));
  }
  scene.corners = circles.length / 2;
  scene.rings = gl.createVertexArray();
  gl.bindVertexArray(scene.rings);
  attribute(0, new Float32Array(circles), () => gl.vertexAttribPointer(0, 2, gl.FLOAT, false, 0, 0));
  gl.bindVertexArray(null);
  scene.target = gl.createFramebuffer();
}

/// The canvas and what is drawn into first, as large as the page shows them.
function resize() {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const [width, height] = [canvas.clientWidth, canvas.clientHeight].map((side) =>
    Math.min(Math.max(1, Math.round(side * ratio)), gl.getParameter(gl.MAX_TEXTURE_SIZE)));
  if (scene.width === width && scene.height === height) return;
  Object.assign(canvas, {width, height});
  Object.assign(scene, {width, height, ratio});
  for (const old of [scene.colours, scene.depths]) gl.deleteTexture(old);
  scene.colours = texture(gl.NEAREST);
  gl.texStorage2D(gl.TEXTURE_2D, 1, gl.RGBA8, width, height);
  scene.depths = texture(gl.NEAREST);
  gl.texStorage2D(gl.TEXTURE_2D, 1, gl.DEPTH_COMPONENT24, width, height);
  gl.bindFramebuffer(gl.FRAMEBUFFER, scene.target);
  gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, scene.colours, 0);
  gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.TEXTURE_2D, scene.depths, 0);
}

function drawPoints({matrix}) {
  const {made, uniforms: u} = scene.points;
  gl.useProgram(made);
  gl.uniformMatrix4fv(u.matrix, false, matrix);
  gl.uniform3fv(u.low, low);
  gl.uniform3fv(u.unit, scan.step);
  const {low: from, high: to} = scan.scales.height;
  gl.uniform2f(u.heights, from - scan.centre[2], Math.max(to, from + 1e-6) - scan.centre[2]);
  const [most, unit] = [gl.getParameter(gl.ALIASED_POINT_SIZE_RANGE)[1], 2 ** state.size];
  const tall = Math.max(scene.height / 900, 0.8 * scene.ratio);
  gl.uniform3f(u.pixels, 0.0012 * scan.reach * kFocal * scene.height * unit,
               Math.min(1.4 * tall * unit, most), Math.min(10 * tall * unit, most));
  gl.uniform1i(u.colouring, ["height", "intensity", "label"].indexOf(state.colour));
  gl.uniform1i(u.scale, 0);
  gl.uniform1i(u.classes, 1);
  gl.activeTexture(gl.TEXTURE1);
  gl.bindTexture(gl.TEXTURE_2D, scene.classes);
  gl.activeTexture(gl.TEXTURE0);
  gl.bindTexture(gl.TEXTURE_2D, scene.scales[state.colour] || scene.scales.height);
  gl.bindVertexArray(scene.cloud);
  gl.drawArrays(gl.POINTS, 0, scan.points);
}

function drawRings({matrix}, light) {
  gl.useProgram(scene.lines.made);
  gl.uniformMatrix4fv(scene.lines.uniforms.matrix, false, matrix);
  gl.uniform4fv(scene.lines.uniforms.colour, light ? [0.35, 0.42, 0.52, 0.6] : [0.36, 0.45, 0.57, 0.6]);
  gl.bindVertexArray(scene.rings);
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
  gl.depthMask(false);
  gl.drawArrays(gl.LINES, 0, scene.corners);
  gl.depthMask(true);
  gl.disable(gl.BLEND);
}

function draw() {
  resize();
  const light = root.dataset.theme === "light";
  const view = projection();
  gl.bindFramebuffer(gl.FRAMEBUFFER, scene.target);
  gl.viewport(0, 0, scene.width, scene.height);
  gl.clearColor(...kGrounds[light ? "light" : "dark"].map((value) => value / 255), 1);
  gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
  gl.enable(gl.DEPTH_TEST);
  if (scan.points > 0) drawPoints(view);
  if (state.rings) drawRings(view, light);
  gl.disable(gl.DEPTH_TEST);
  gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  const {made, uniforms: u} = scene.shade;
  gl.useProgram(made);
  gl.bindVertexArray(null);
  gl.activeTexture(gl.TEXTURE1);
  gl.bindTexture(gl.TEXTURE_2D, scene.depths);
  gl.activeTexture(gl.TEXTURE0);
  gl.bindTexture(gl.TEXTURE_2D, scene.colours);
  gl.uniform1i(u.colours, 0);
  gl.uniform1i(u.depths, 1);
  gl.uniform2f(u.range, view.near, view.far);
  gl.uniform1f(u.reach, 1.4 * scene.ratio);
  gl.drawArrays(gl.TRIANGLES, 0, 3);
  canvas.dataset.points = drawnPoints();
  canvas.dataset.colour = state.colour;
  canvas.dataset.answer = answer().name;
  canvas.dataset.view =
    [state.yaw, state.pitch, state.distance, ...state.target].map((value) => value.toFixed(4)).join(" ");
}

let requested = false;
function request() {
  if (requested || scene === null) return;
  requested = true;
  requestAnimationFrame(() => {
    requested = false;
    if (scene === null) return;
    try {
      draw();
    } catch (error) {
      fail(`The points cannot be drawn: ${error.message}`);
    }
  });
}

function fail(sentence) {
  element("trouble").textContent = sentence;
  element("trouble").hidden = false;
  scene = null;
}
