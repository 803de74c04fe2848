// The panel, mouse, touch and keys, and the start of it all. Last of the parts of one script.

function choose(mode) {
  state.colour = mode;
  const scale = scan.scales[mode];
  element("scale").hidden = !scale;
  if (scale) {
    element("bar").style.background = `linear-gradient(to right, ${scale.colours.map(css).join(", ")})`;
    element("low").textContent = scale.low.toFixed(2);
    element("quantity").textContent = scale.quantity;
    element("high").textContent = scale.high.toFixed(2);
  }
  for (const input of element("choices").querySelectorAll("input")) input.checked = input.value === mode;
  element("views").hidden = mode !== "label" || scan.answers.length < 2;
  request();
}

/// Shows the classes of another answer: prediction, truth or error.
function showAnswer(number) {
  if (scan.answers.length === 0) return;
  state.answer = number % scan.answers.length;
  const inputs = [...element("answers").querySelectorAll("input")];
  inputs.forEach((input, i) => { input.checked = i === state.answer; });
  useAnswer();
  listClasses();
  showClasses();
}

function make(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function listChoices(id, group, names, chosen) {
  names.forEach((name, i) => {
    const input = make("input", {type: "radio", name: group, value: name});
    input.addEventListener("change", () => chosen(name, i));
    element(id).append(make("label", {}, input, make("span", {textContent: name})));
  });
}

function listColours() {
  listChoices("choices", "colour", modes, choose);
  listChoices("answers", "answer", scan.answers.map(({name}) => name), (name, i) => showAnswer(i));
  element("colours").hidden = modes.length < 2;
}

function showClasses() {
  paintClasses();
  element("list").querySelectorAll("input").forEach((input, kind) => {
    input.checked = !answer().hidden.has(answer().classes[kind].number);
  });
  element("status").textContent = `${format(drawnPoints())} of ${format(scan.points)} points are shown`;
  request();
}

function listClasses() {
  const {classes, hidden} = answer();
  element("list").replaceChildren(...classes.map(({number, name, colour, points}) => {
    const input = make("input", {type: "checkbox", checked: true});
    input.addEventListener("change", () => {
      if (input.checked) hidden.delete(number);
      else hidden.add(number);
      showClasses();
    });
    const swatch = make("i", {});
    swatch.style.background = css(colour);
    return make("li", {}, make("label", {}, input, swatch,
      make("span", {className: "name", textContent: name}),
      make("span", {className: "count", textContent: format(points)})));
  }));
  element("classes").hidden = classes.length === 0;
}

function listenToClasses() {
  element("all").addEventListener("click", () => {
    answer().hidden.clear();
    showClasses();
  });
  element("none").addEventListener("click", () => {
    for (const {number} of answer().classes) answer().hidden.add(number);
    showClasses();
  });
}

function setSize(size) {
  state.size = Math.min(3, Math.max(-2, size));
  element("size").value = state.size;
  request();
}

function setTheme(theme) {
  root.dataset.theme = theme;
  element("theme").textContent = theme === "light" ? "Dark" : "Light";
  paintScales();
  choose(state.colour);
  showAnswer(state.answer);
}

function fold() {
  const hide = !element("panel").hidden;
  element("panel").hidden = hide;
  element("fold").textContent = hide ? "Show panel" : "Hide panel";
  element("fold").setAttribute("aria-expanded", String(!hide));
  request();
}

function listenToPanel() {
  element("size").addEventListener("input", () => setSize(Number(element("size").value)));
  element("rings").addEventListener("change", () => {
    state.rings = element("rings").checked;
    request();
  });
  element("ring-step").textContent = `every ${scan.ring} m`;
  element("reset").addEventListener("click", resetView);
  element("above").addEventListener("click", viewFromAbove);
  element("fold").addEventListener("click", fold);
  let chosen = false;
  element("theme").addEventListener("click", () => {
    chosen = true;
    setTheme(root.dataset.theme === "light" ? "dark" : "light");
  });
  const light = matchMedia("(prefers-color-scheme: light)");
  const follow = () => { if (!chosen) setTheme(light.matches ? "light" : "dark"); };
  light.addEventListener("change", follow);
  follow();
}

// ---- mouse, touch, keys ----

function listenToPointers() {
  const down = new Map();   // pointers and where they are
  const place = (event) => [event.clientX, event.clientY];
  const fromMiddle = ([x, y]) => {
    const [mx, my] = middle();
    return [x - innerWidth * (1 + mx) / 2, y - innerHeight * (1 - my) / 2];
  };
  const pair = () => {
    const [[ax, ay], [bx, by]] = [...down.values()];
    return {middle: [(ax + bx) / 2, (ay + by) / 2], apart: Math.hypot(ax - bx, ay - by)};
  };
  canvas.addEventListener("pointerdown", (event) => {
    down.set(event.pointerId, place(event));
    canvas.focus({preventScroll: true});
  });
  window.addEventListener("pointermove", (event) => {
    const before = down.get(event.pointerId);
    if (!before) return;
    const now = place(event);
    const [dx, dy] = [now[0] - before[0], now[1] - before[1]];
    if (down.size === 2) {
      const old = pair();
      down.set(event.pointerId, now);
      const fresh = pair();
      move(fresh.middle[0] - old.middle[0], fresh.middle[1] - old.middle[1]);
      zoom(Math.max(old.apart, 1) / Math.max(fresh.apart, 1), ...fromMiddle(fresh.middle));
      return;
    }
    down.set(event.pointerId, now);
    if (down.size > 2) return;
    if (event.shiftKey || (event.buttons & 6) !== 0) move(dx, dy);
    else turn(0.006 * dx, 0.006 * dy);
  });
  for (const name of ["pointerup", "pointercancel"]) {
    window.addEventListener(name, (event) => down.delete(event.pointerId));
  }
  canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const lines = event.deltaMode === 0 ? event.deltaY : 24 * event.deltaY;
    zoom(Math.exp(Math.max(-1, Math.min(1, lines * (event.ctrlKey ? 0.01 : 0.0015)))),
         ...fromMiddle(place(event)));
  }, {passive: false});
}

function listenToKeys() {
  const arrows = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
  const keys = {
    "+": () => zoom(0.85), "=": () => zoom(0.85), "-": () => zoom(1 / 0.85), "_": () => zoom(1 / 0.85),
    "[": () => setSize(state.size - 0.25), "]": () => setSize(state.size + 0.25),
    "r": resetView, "a": viewFromAbove, "h": fold,
    "c": () => choose(modes[(modes.indexOf(state.colour) + 1) % modes.length]),
    "v": () => showAnswer(state.answer + 1),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = event.target === canvas || event.target === document.body ? arrows[event.key] : null;
    const key = keys[event.key.toLowerCase()];
    if (arrow) {
      if (event.shiftKey) move(-40 * arrow[0], -40 * arrow[1]);
      else turn(0.08 * arrow[0], 0.08 * arrow[1]);
    } else if (key) {
      key();
    } else {
      return;
    }
    event.preventDefault();
  });
}

// ---- all of it ----

function start() {
  gl = canvas.getContext("webgl2", {antialias: false, depth: false, alpha: false});
  if (gl === null) {
    canvas.hidden = true;
    for (const part of [...element("panel").children].slice(1)) part.hidden = true;
    element("fold").hidden = true;
    root.dataset.theme = matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark";
    fail("This browser does not offer WebGL2, which drawing the points takes. Open this page in a " +
         "current browser, or switch hardware acceleration on in its settings.");
    root.dataset.state = "failed";
    return;
  }
  build();
  listColours();
  listenToClasses();
  listenToPanel();
  listenToPointers();
  listenToKeys();
  new ResizeObserver(request).observe(canvas);
  canvas.addEventListener("webglcontextlost", (event) => {
    event.preventDefault();
    fail("The graphics driver has stopped drawing; the points come back when it does.");
  });
  canvas.addEventListener("webglcontextrestored", () => {
    build();
    element("trouble").hidden = true;
    request();
  });
  resetView();
  root.dataset.state = "ready";
}

try {
  start();
} catch (error) {
  fail(`The points cannot be drawn: ${error.message}`);
  root.dataset.state = "failed";
}
