// Shows what play.py has gathered: a graph, the user's lines, and one frame after another. No number is computed here.
(() => {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const PADDING = 7, LINE = 22, NAME = 12; // as in play.py
  const NUMBERS = 8; // a matrix with more rows or columns is shown as colours only
  const PAUSE = 1500; // milliseconds between two steps while it plays
  const ICONS = {
    first: "M6 5v14M18 5l-8 7 8 7",
    back: "M15 5l-8 7 8 7",
    play: "M8 5v14l11-7z",
    pause: "M8 5v14M16 5v14",
    next: "M9 5l8 7-8 7",
    last: "M18 5v14M6 5l8 7-8 7",
    full: "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
  };

  // A notebook may hold several, and may run this script again: each is started once.
  for (const root of document.querySelectorAll(".tapejax-play:not([data-started])")) {
    root.dataset.started = "";
    start(root);
  }

  function start(root) {
    const data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
    const style = root.querySelector("style");
    const shadow = root.attachShadow({ mode: "open" }); // from here on the still picture is not shown
    shadow.append(style);
    style.removeAttribute("media");
    dye();
    new MutationObserver(dye).observe(document.body, { attributes: true }); // each step looks again: a theme may load later

    const alone = root.dataset.kind === "page"; // nothing else is on the page
    let page = alone; // it has the whole window
    const { frames } = data;
    const turn = frames.findIndex((frame) => frame.kind === "seed");
    const last = frames.length - 1;
    let current = 0;
    let timer = null;
    let drawn = null; // the graph as it is laid out now
    let arranged = ""; // for which window

    // ---- what is on the page ----

    const phases = [
      phase("Forward", "value by value", 0, turn),
      phase("Backward", "cotangent by cotangent", turn, last + 1),
    ];
    const buttons = {
      first: button("first", "To the start", () => show(0)),
      back: button("back", "One step back", () => show(current - 1)),
      play: button("play", "Play", () => (timer === null ? run() : stop())),
      next: button("next", "One step on", () => show(current + 1)),
      last: button("last", "To the gradient", () => show(last)),
    };
    const slider = element("input", { type: "range", min: 0, max: last, value: 0, step: 1, "aria-label": "Step" });
    slider.addEventListener("input", () => show(Number(slider.value)));
    const counter = element("span", { class: "counter" });
    const full = document.fullscreenEnabled ? [button("full", "Full screen", toggleFull)] : [];
    const graph = element("div", { class: "graph" });
    const now = element("section", { class: "now", "aria-live": "polite", "aria-label": "This step" });
    const rows = data.code.map(codeRow);
    const code = element("section", { class: "code", "aria-label": "The recorded lines" }, element("ol", {}, ...rows));
    const panel = element("div", { class: "panel" }, ...(rows.length ? [code] : []), now);
    const player = element(
      "div",
      { class: "player", tabindex: -1, role: "group", "aria-label": root.getAttribute("aria-label") },
      element("div", { class: "phases" }, ...phases),
      element("div", { class: "controls" }, ...Object.values(buttons), slider, counter, ...full),
      element("div", { class: "stage" }, graph, panel),
    );
    shadow.append(player);
    (alone ? document : player).addEventListener("keydown", onKey);
    player.addEventListener("fullscreenchange", () => {
      page = alone || shadow.fullscreenElement === player;
      arrange();
    });
    new ResizeObserver(() => arrange()).observe(player);
    arrange();
    show(0);

    function phase(title, subtitle, from, to) {
      const made = element("button", { type: "button" }, element("b", {}, title), element("span", {}, subtitle));
      made.style.flexGrow = to - from;
      made.addEventListener("click", () => show(from));
      return made;
    }

    function button(icon, label, act) {
      const picture = svg("svg", { viewBox: "0 0 24 24", "aria-hidden": true }, svg("path", { d: ICONS[icon] }));
      const made = element("button", { type: "button", class: icon, title: label, "aria-label": label }, picture);
      made.addEventListener("click", () => {
        if (icon !== "play" && icon !== "full") stop();
        act();
      });
      return made;
    }

    function codeRow(row, index) {
      if (row.file) return element("li", { class: "file" }, row.file);
      if (row.gap) return element("li", { class: "gap", "aria-label": "lines left out" }, "⋮");
      const made = element("li", {}, element("span", { class: "number" }, String(row.number)), element("code", {}, row.text));
      const lit = frames.flatMap((frame, at) => (rowsOf(frame).includes(index) ? [at] : []));
      if (lit.length) {
        made.classList.add("ran");
        made.addEventListener("click", () => {
          stop();
          show(lit.find((at) => at > current) ?? lit[0]);
        });
      }
      return made;
    }

    function dye() {
      const dark = onDark(root);
      if (dark !== null) root.dataset.theme = dark ? "dark" : "light";
    }

    // ---- stepping ----

    function onKey(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const target = event.composedPath()[0];
      if (event.key === " ") {
        if (target.localName === "button") return; // it presses the button
        timer === null ? run() : stop();
      } else if (event.key === "f" && full.length) {
        toggleFull();
      } else {
        const to = { ArrowRight: current + 1, ArrowLeft: current - 1, Home: 0, End: last }[event.key];
        if (to === undefined) return;
        stop();
        show(to);
      }
      event.preventDefault();
      event.stopPropagation(); // an exported slide would move on
    }

    function toggleFull() {
      shadow.fullscreenElement ? document.exitFullscreen() : player.requestFullscreen();
    }

    function run() {
      if (current === last) show(0);
      timer = setInterval(() => (current === last ? stop() : show(current + 1)), PAUSE);
      playing(true);
    }

    function stop() {
      clearInterval(timer);
      timer = null;
      playing(false);
    }

    function playing(on) {
      buttons.play.querySelector("path").setAttribute("d", ICONS[on ? "pause" : "play"]);
      buttons.play.title = on ? "Pause" : "Play";
      buttons.play.setAttribute("aria-label", buttons.play.title);
    }

    function show(at) {
      current = Math.max(0, Math.min(last, at));
      const frame = frames[current];
      const backward = current >= turn;
      player.classList.toggle("backward", backward);
      phases.forEach((made, i) => made.setAttribute("aria-current", i === Number(backward) ? "step" : "false"));
      slider.value = current;
      slider.setAttribute("aria-valuetext", `${current} of ${last}, ${backward ? "backward" : "forward"}`);
      counter.textContent = `${current} / ${last}`;
      dye();
      const focused = shadow.activeElement;
      buttons.first.disabled = buttons.back.disabled = current === 0;
      buttons.next.disabled = buttons.last.disabled = current === last;
      if (focused?.disabled) player.focus({ preventScroll: true }); // a button that is off would swallow the keys
      now.replaceChildren(...told(frame));
      now.scrollTop = 0;
      const lit = rowsOf(frame);
      rows.forEach((row, i) => row.classList.toggle("lit", lit.includes(i)));
      if (lit.length) reveal(code, rows[lit[0]], rows[lit[lit.length - 1]], false);
      light(frame);
    }

    function rowsOf(frame) {
      return frame.node === undefined ? [] : data.nodes[frame.node].rows;
    }

    /** Of each array its cotangent, as far as the current frame. */
    function cotangents() {
      const found = new Map();
      for (const frame of frames.slice(turn, current + 1)) {
        for (const sum of frame.sums ?? []) found.set(sum.array, sum.after);
      }
      return found;
    }

    // ---- what is told of a frame ----

    function told(frame) {
      const value = (index, kind = "") => shown(data.values[index], kind);
      const array = (index) => data.arrays[index];
      const by = (index) => cotangentName(data.of, array(index).name);
      const named = (index) => line(name(array(index).name), typed(data.values[array(index).value]), value(array(index).value));
      const noted = ({ node }) => (data.nodes[node].count > 1 ? [element("p", { class: "note" }, data.nodes[node].note)] : []);

      if (frame.kind === "start") {
        return [heading("What the gradient is taken with respect to"), ...frame.sources.map(named), hint()];
      }
      if (frame.kind === "forward") {
        const made = [title(frame.said), ...noted(frame), ...frame.outs.map(named)];
        if (frame.ins.length) made.push(element("div", { class: "given" }, heading("from"), ...frame.ins.map(named)));
        return made;
      }
      if (frame.kind === "seed") {
        if (!frame.sums.length) return [heading(`From ${data.of} nothing goes back to the sources`)];
        return [heading("The backward pass begins"), ...frame.sums.map((sum) => line(by(sum.array), "", equation(sum)))];
      }
      if (frame.kind === "backward") {
        return [
          title(frame.said, "back through"),
          ...noted(frame),
          heading("the cotangent of its result is complete"),
          ...frame.ins.map(([index, found]) => line(by(index), typed(data.values[found]), value(found, "cotangent"))),
          heading("the cotangents of its inputs: what is added"),
          ...frame.sums.map((sum) => line(by(sum.array), "", equation(sum))),
        ];
      }
      return [
        heading("The gradient"),
        ...frame.gradients.map((found) => {
          const label = cotangentName(data.of, found.name);
          if (found.value === null) return line(label, "", element("span", { class: "none" }, "None: no cotangent came back"));
          return line(label, typed(data.values[found.value]), value(found.value, "cotangent"));
        }),
      ];

      function equation({ before, parts, after, count }) {
        const made = element("div", { class: "equation" });
        const add = (sign, index, kind) => made.append(element("span", { class: "term" }, sign, value(index, kind)));
        if (before !== null) add("", before, "before");
        parts.forEach((part, i) => add(i || before !== null ? "+" : "", part, "part"));
        if (!parts.length) made.append(`${before === null ? "" : "+ "}${count} contribution${count === 1 ? "" : "s"}`);
        if (before !== null || parts.length !== 1) add("=", after, "cotangent");
        return made;
      }
    }

    function hint() {
      return element("p", { class: "hint" }, "Press play, or step with the keys ", element("kbd", {}, "←"), " ", element("kbd", {}, "→"));
    }

    // ---- the graph ----

    function arrange() {
      const width = player.clientWidth - 32;
      const room = `${width} ${page ? window.innerHeight : ""}`;
      player.classList.toggle("page", page);
      if (width <= 0 || room === arranged) return; // not on the screen yet, or as before
      arranged = room;
      const { across, down } = data.layouts;
      const narrow = width < 640;
      const most = page ? 1.8 : 1.3;
      const height = page ? window.innerHeight - 120 : 560;
      const fits = (layout, x, y) => Math.min(most, (x - 12) / layout.size[0], (y - 12) / layout.size[1]);
      // a page of its own has the height for a picture that is much larger, a notebook saves it
      const least = page ? Math.max(0.68, 0.75 * fits(down, 0.55 * width, height)) : 0.72;
      const isAcross = !narrow && fits(across, width, 0.6 * height) >= least;
      const layout = isAcross ? across : down;
      const breadth = isAcross || narrow ? width : 0.55 * width;
      // what does not fit is scrolled, at the size at which it is read
      const whole = fits(layout, breadth, isAcross || narrow ? 0.6 * height : height);
      const scale = isAcross ? whole : Math.max(whole, Math.min(1.1, Math.max(0.7, (breadth - 12) / layout.size[0])));
      player.classList.toggle("across", isAcross);
      player.classList.toggle("down", !isAcross);
      player.classList.toggle("narrow", narrow);
      graph.style.width = isAcross || narrow ? "" : `${Math.min(breadth, layout.size[0] * scale + 24)}px`;
      if (drawn?.layout !== layout) {
        drawn = draw(layout, isAcross);
        graph.replaceChildren(drawn.picture);
      }
      drawn.picture.setAttribute("width", (layout.size[0] + 12) * scale);
      drawn.picture.setAttribute("height", (layout.size[1] + 12) * scale);
      reserve(isAcross && !page ? panel : narrow ? now : null);
      light(frames[current]);
    }

    /** Gives a box the height of the highest frame, so that nothing moves when one steps. */
    function reserve(box) {
      for (const each of [panel, now]) each.style.height = "";
      if (!box) return;
      now.setAttribute("aria-live", "off");
      box.style.height = "0px";
      const heights = frames.map((frame) => {
        now.replaceChildren(...told(frame));
        return now.scrollHeight;
      });
      now.replaceChildren(...told(frames[current]));
      now.setAttribute("aria-live", "polite");
      const em = parseFloat(getComputedStyle(player).fontSize);
      box.style.height = `${Math.min(Math.max(...heights, box === panel ? code.scrollHeight : 0) + 4, 30 * em)}px`;
    }

    function draw(layout, isAcross) {
      const [width, height] = layout.size;
      const edges = layout.paths.map((path, i) => drawEdge(path, data.edges[i][2], isAcross));
      const nodes = layout.places.map((place, i) => drawNode(place, data.nodes[i], i));
      const label = `The graph of ${data.of}: ${data.operations} operations`;
      const picture = svg("svg", { viewBox: `-6 -6 ${width + 12} ${height + 12}`, role: "img", "aria-label": label });
      picture.append(...edges, ...nodes.map((node) => node.group));
      return { layout, picture, edges, nodes };
    }

    function drawEdge(path, kind, isAcross) {
      const points = path.match(/-?[\d.]+/g).map(Number);
      const [x, y] = points.slice(-2);
      const to = isAcross ? `M${x + 1} ${y}l-9 -5v10z` : `M${x} ${y + 1}l-5 -9h10z`;
      const from = isAcross ? `M${points[0] - 1} ${points[1]}l9 -5v10z` : `M${points[0]} ${points[1] - 1}l-5 9h10z`;
      return svg(
        "g",
        { class: `edge ${kind}` },
        svg("path", { class: "way", d: path }),
        svg("path", { class: "to", d: to }),
        svg("path", { class: "from", d: from }),
      );
    }

    function drawNode([x, y, width, height], node, index) {
      const rect = svg("rect", { width, height, rx: node.kind === "operation" ? 8 : Math.min(height / 2, 22) });
      const middle = width / 2;
      const texts = [text("label", middle, 0, node.label)];
      if (node.note) texts.push(text(node.count === 1 ? "own" : "note", middle, 1, node.note));
      const value = svg("g", { class: "value" });
      const cotangent = svg("g", { class: "cotangent" });
      const kinds = `node ${node.kind}${isSource(node) ? " source" : ""}${node.carries ? " carries" : ""}${node.target ? " target" : ""}`;
      const group = svg("g", { class: kinds, transform: `translate(${x - middle} ${y - height / 2})` });
      group.append(svg("title", {}, node.label), rect, ...texts, value, cotangent);
      group.addEventListener("click", () => {
        const at = frames.findIndex((frame, i) => frame.node === index && i >= turn === current >= turn);
        stop();
        if (at >= 0) show(at);
      });
      return { group, value, cotangent, width, height, top: texts.length };
    }

    /** Brings the graph to the current frame. */
    function light(frame) {
      if (!drawn) return;
      const backward = current >= turn;
      const found = cotangents();
      const ended = frame.kind === "end";
      data.nodes.forEach((node, i) => {
        const { group, value, cotangent, width, height, top } = drawn.nodes[i];
        const there = backward || current >= node.since;
        const got = node.arrays.filter((index) => found.has(index));
        group.classList.toggle("ahead", !there);
        group.classList.toggle("active", frame.node === i || (ended && isSource(node)));
        group.classList.toggle("receiving", receives(frame, i));
        value.replaceChildren();
        cotangent.replaceChildren();
        if (!there || !node.arrays.length) return;
        const [index] = node.arrays;
        const told = data.values[data.arrays[index].value];
        const single = node.arrays.length === 1;
        if (single && isMatrix(told)) {
          const half = node.carries ? width / 2 : width;
          const area = [half - 22, height - 2 * PADDING - LINE * top];
          const y = PADDING + LINE * top + area[1] / 2;
          value.append(thumb(told, half / 2 + (node.carries ? 4 : 0), y, area));
          if (got.length) cotangent.append(thumb(data.values[found.get(index)], 1.5 * half - 4, y, area));
          return;
        }
        const sign = told.cells ? " = " : ": ";
        const named = node.kind === "operation" ? clipped(data.arrays[index].name, NAME) + sign : "";
        const said = single ? named + brief(told) : `${node.arrays.length} values`;
        value.append(text("number", width / 2, top, said));
        if (got.length) {
          const back = got.length === 1 ? brief(data.values[found.get(got[0])]) : `${got.length} cotangents`;
          cotangent.append(text("number", width / 2, top + 1, `∂ ${back}`));
        }
      });
      data.edges.forEach(([tail, head, kind], i) => {
        const edge = drawn.edges[i];
        const passes = frame.kind === "forward" || (kind === "carries" && receives(frame, tail));
        edge.classList.toggle("ahead", !backward && current < data.nodes[head].since);
        edge.classList.toggle("lit", frame.node === head && passes);
      });
      const node = frame.node ?? (frame.kind === "start" ? 0 : data.nodes.findIndex((n) => (ended ? isSource(n) : n.target)));
      if (node >= 0) reveal(graph, drawn.nodes[node].group);
    }

    function isSource(node) {
      return node.arrays.some((index) => frames[0].sources.includes(index));
    }

    /** Whether something is added to a cotangent of a node. */
    function receives(frame, node) {
      return (frame.sums ?? []).some((sum) => data.nodes[node].arrays.includes(sum.array));
    }
  }

  // ---- values ----

  function isMatrix(value) {
    return value.cells !== undefined && value.cells.length * value.cells[0].length > 1;
  }

  /** A value where there is room for a few characters. */
  function brief(value) {
    return value.cells && !isMatrix(value) ? short(value.cells[0][0], 4) : value.shape;
  }

  /** A value as HTML: a number, a heat map, or its shape and range. */
  function shown(value, kind) {
    if (!value.cells) return element("span", { class: `large ${kind}` }, value.text || value.type);
    if (!isMatrix(value)) return element("span", { class: `single ${kind}`, title: value.cells[0][0] }, short(value.cells[0][0]));
    const dense = value.cells.length > NUMBERS || value.cells[0].length > NUMBERS;
    const colour = colours(value.cells);
    const cell = (text) => {
      const made = element("td", { title: text }, dense ? "" : short(text));
      const found = colour(text);
      if (found) made.style.backgroundImage = `linear-gradient(${found}, ${found})`;
      else made.className = "strange";
      return made;
    };
    const rows = value.cells.map((row) => element("tr", {}, ...row.map(cell)));
    return element("table", { class: `matrix ${kind}${dense ? " dense" : ""}` }, element("tbody", {}, ...rows));
  }

  /** A matrix as small squares around a place in the graph. */
  function thumb(value, x, y, [width, height]) {
    const rows = value.cells.length;
    const columns = value.cells[0].length;
    const size = Math.min(14, width / columns, height / rows);
    const colour = colours(value.cells);
    const made = svg("g", { class: "thumb", transform: `translate(${x - (size * columns) / 2} ${y - (size * rows) / 2})` });
    made.append(svg("rect", { class: "frame", x: -1.5, y: -1.5, width: size * columns + 3, height: size * rows + 3 }));
    value.cells.forEach((row, i) =>
      row.forEach((text, j) => {
        made.append(svg("rect", { x: j * size, y: i * size, width: size, height: size, fill: colour(text) ?? "#888" }));
      }),
    );
    return made;
  }

  /** Blue below zero, red above, the stronger the further from it; nothing for what is no finite number. */
  function colours(cells) {
    const sizes = cells.flat().map(number).filter(Number.isFinite).map(Math.abs);
    const scale = Math.max(...sizes, 0) || 1;
    return (text) => {
      const found = number(text);
      if (!Number.isFinite(found)) return null;
      return `rgba(${found < 0 ? "0,90,181" : "220,50,32"},${((0.62 * Math.abs(found)) / scale).toFixed(3)})`;
    };
  }

  function number(text) {
    return text === "True" ? 1 : text === "False" ? 0 : Number(text);
  }

  /** A number in few characters; the whole of it is in the title. */
  function short(text, digits = 5) {
    if (text.length <= digits + 1 || /^-?\d{1,9}$/.test(text) || !Number.isFinite(Number(text))) return text;
    const found = Number(Number(text).toPrecision(digits));
    return found !== 0 && (Math.abs(found) >= 1e6 || Math.abs(found) < 1e-3) ? found.toExponential() : String(found);
  }

  function clipped(text, width) {
    return text.length > width ? `${text.slice(0, width - 1)}…` : text;
  }

  // ---- pieces of the page ----

  function element(tag, attributes = {}, ...children) {
    return filled(document.createElement(tag), attributes, children);
  }

  function svg(tag, attributes = {}, ...children) {
    return filled(document.createElementNS(SVG, tag), attributes, children);
  }

  function filled(made, attributes, children) {
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children); // strings become text, whatever is in them
    return made;
  }

  function text(kind, x, row, said) {
    return svg("text", { class: kind, x, y: PADDING + LINE * row + 16 }, said);
  }

  function title(said, before = "") {
    return element("h2", {}, element("span", { class: "aside" }, before), said);
  }

  function heading(said) {
    return element("h3", {}, said);
  }

  function name(said) {
    return element("span", { class: "name" }, said);
  }

  function cotangentName(of, by) {
    return element("span", { class: "name cotangent" }, `∂${of}/∂${by}`);
  }

  function typed(value) {
    return element("span", { class: "type" }, value.type);
  }

  function line(label, type, value) {
    return element("div", { class: "line" }, element("div", { class: "what" }, label, type), value);
  }

  /** Scrolls a box, and not the page around it, until the middle of what is between two of its elements is in its middle. */
  function reveal(box, first, end = first, sideways = true) {
    const inside = box.getBoundingClientRect();
    const [a, b] = [first.getBoundingClientRect(), end.getBoundingClientRect()];
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    box.scrollTo({
      left: sideways ? box.scrollLeft + (a.left + b.right) / 2 - (inside.left + inside.right) / 2 : 0,
      top: box.scrollTop + (a.top + b.bottom) / 2 - (inside.top + inside.bottom) / 2,
      behavior: calm ? "instant" : "smooth",
    });
  }

  /** Whether what is behind an element is dark: a notebook has its own theme. Null where nothing is painted. */
  function onDark(found) {
    for (let behind = found.parentElement; behind; behind = behind.parentElement) {
      const [red, green, blue, alpha = 1] = (getComputedStyle(behind).backgroundColor.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
      if (alpha > 0.5) return 0.3 * red + 0.59 * green + 0.11 * blue < 128;
    }
    return null;
  }
})();
