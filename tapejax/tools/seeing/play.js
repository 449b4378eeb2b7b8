// Shows what play.py has gathered: a graph, the user's lines, and one frame after another. No number is computed here.
(() => {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const PADDING = 7, LINE = 22, NAME = 12; // as in play.py
  const NUMBERS = 8; // a matrix with more rows or columns is shown as colours only
  const SMALLEST = 10; // pixels of a letter
  const PAUSE = 1500; // milliseconds between two steps while it plays
  const FADING = 1 / 6; // a number a million times smaller has a tenth of the colour
  const PARTS = /\d[\d.]*(?:e[-+]?\d+)?/g; // the sizes of both parts of a complex number, in its text
  const ICONS = {
    first: "M6 5v14M18 5l-8 7 8 7",
    back: "M15 5l-8 7 8 7",
    play: "M8 5v14l11-7z",
    pause: "M8 5v14M16 5v14",
    next: "M9 5l8 7-8 7",
    last: "M18 5v14M6 5l8 7-8 7",
    repeat: "M17 3l4 4-4 4M3 12v-1a4 4 0 0 1 4-4h14M7 21l-4-4 4-4M21 12v1a4 4 0 0 1-4 4H3",
    predict: "M8.5 9a3.5 3.5 0 1 1 5.2 3.1c-1.2.7-1.7 1.4-1.7 2.6M12 18.4v.2",
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
    const dye = () => {
      const dark = onDark(root);
      if (dark !== null) root.dataset.theme = dark ? "dark" : "light";
    };
    dye();
    new MutationObserver(dye).observe(document.body, { attributes: true }); // each step looks again: a theme may load later

    const alone = root.dataset.kind === "page"; // nothing else is on the page
    const shell = element("div", { class: "shell" });
    shadow.append(shell);
    const levels = []; // players, each opened inside the one before
    const top = () => levels[levels.length - 1];
    const within = { shell, shadow, alone, dye, scale: data.scale, enter, leave, moved };
    let linking = null;

    enter(data, root.getAttribute("aria-label"));
    (alone ? document : shell).addEventListener("keydown", (event) => top().onKey(event));
    if (root.closest(".slides section")) window.addEventListener("keydown", (event) => onSlide(root) && top().onPageKey(event), true);
    shell.addEventListener("fullscreenchange", () => top().arrange());
    new ResizeObserver(() => top().arrange()).observe(shell);
    if (alone) {
      follow();
      window.addEventListener("hashchange", follow);
    }

    function enter(data, title) {
      top()?.stop();
      levels.push(player(data, title, levels.length, within));
      top().begin();
    }

    function leave() {
      top().stop();
      levels.pop();
      top().begin();
    }

    /** Writes the step into the address of the page, from which `follow` reads it: a link to a step. */
    function moved() {
      if (!alone) return;
      clearTimeout(linking); // browsers refuse hundreds of changes in a row
      linking = setTimeout(() => history.replaceState(null, "", `#${levels.map((level) => level.place()).join("/")}`), 100);
    }

    function follow() {
      const places = location.hash.slice(1).split("/");
      if (!places.every((place) => /^(forward-)?\d+$/.test(place))) return;
      while (levels.length > 1) leave();
      places.forEach((place, i) => (i === 0 || top().open()) && top().go(place));
    }
  }

  /** Whether an element is on the slide that is shown now. */
  function onSlide(root) {
    for (let slide = root.closest("section"); slide; slide = slide.parentElement.closest("section")) {
      if (!slide.classList.contains("present")) return false;
    }
    return root.checkVisibility?.({ opacityProperty: true, visibilityProperty: true }) ?? true;
  }

  /** A graph and its frames. */
  function player(data, label, depth, within) {
    const { shell, shadow, alone, dye, scale } = within;
    const turn = data.frames.findIndex((frame) => frame.kind === "seed");
    const tangents = new Map(data.forward_mode.tangents);
    let page = alone; // it has the whole window
    let frames = data.frames;
    let last = frames.length - 1;
    let forwardMode = false;
    let current = 0;
    let timer = null;
    let drawn = null; // the graph as it is laid out now
    let arranged = ""; // for which window
    let predicting = false;
    let covered = false; // the result of this step, until it is asked for
    let verdict = ""; // on what was predicted
    let splitting = false; // JAX's programs are beside the tape

    // ---- what is on the page ----

    const passes = [
      phase("Forward", "value by value", () => show(0)),
      phase("Backward", "cotangent by cotangent", () => show(turn)),
    ];
    passes[0].style.flexGrow = turn;
    passes[1].style.flexGrow = frames.length - turn;
    const together = phase("Forward mode", "value and tangent together", () => show(0));
    together.style.flexGrow = 1;
    const phases = element("div", { class: "phases" }, ...passes);
    const modes = [false, true].map((forward) => {
      const made = element("button", { type: "button" }, forward ? "Forward mode" : "Reverse mode");
      made.addEventListener("click", () => setMode(forward));
      return made;
    });
    const mode = tangents.size ? [element("div", { class: "modes", role: "group", "aria-label": "Mode" }, ...modes)] : [];
    if (data.split) mode.push(splitter());
    const buttons = {
      first: button("first", "To the start", () => show(0)),
      back: button("back", "One step back", () => step(-1)),
      play: button("play", "Play", () => (timer === null ? run() : stop())),
      next: button("next", "One step on", () => step(1)),
      last: button("last", "To the gradient", () => show(last)),
    };
    const slider = element("input", { type: "range", min: 0, max: last, value: 0, step: 1, "aria-label": "Step" });
    slider.addEventListener("input", () => show(Number(slider.value)));
    const counter = element("span", { class: "counter" });
    const speed = element("select", { class: "speed", title: "Speed", "aria-label": "Speed" });
    for (const times of [0.5, 1, 2, 4]) speed.append(element("option", { value: times }, `${times}×`));
    speed.value = 1;
    speed.addEventListener("change", () => timer !== null && run());
    const repeat = toggle("repeat", "Repeat", () => {});
    const predict = toggle("predict", "Predict each result before it is shown", (on) => {
      predicting = on;
      uncover();
    });
    const full = document.fullscreenEnabled ? [button("full", "Full screen", toggleFull)] : [];
    const graph = element("div", { class: "graph" });
    const now = element("section", { class: "now", "aria-live": "polite", "aria-label": "This step" });
    const rows = data.code.map(codeRow);
    const code = element("section", { class: "code", "aria-label": "The recorded lines" }, element("ol", {}, ...rows));
    const panel = element("div", { class: "panel" }, ...(rows.length ? [code] : []), now);
    const back = element("button", { type: "button", class: "leave" }, "← Back");
    back.addEventListener("click", within.leave);
    const listings = data.split ? [listing("the tape", "as it was recorded", tapeRows()), ...data.split.map(({ title, by, rows }) => listing(title, by, rows))] : [];
    const pairs = [0, 2].map((at) => element("div", { class: "pair" }, ...listings.slice(at, at + 2).map((each) => each.box)));
    const sides = listings.length ? [element("div", { class: "sides" }, ...pairs)] : [];
    const player = element(
      "div",
      { class: "player", tabindex: -1, role: "group", "aria-label": label },
      ...(depth ? [element("div", { class: "inside" }, back, element("b", {}, label))] : []),
      element("div", { class: "head" }, phases, ...mode),
      element("div", { class: "controls" }, ...Object.values(buttons), slider, counter, speed, repeat, predict, ...full),
      element("div", { class: "stage" }, graph, ...sides, panel),
    );
    setMode(false);
    if (data.begin_split) setSplit(true);
    return { begin, arrange, stop, onKey, onPageKey, open, go, place };

    /** Puts the player on the page, at the step at which it was. */
    function begin() {
      shell.replaceChildren(player);
      arrange();
      show(current);
      if (depth) player.focus({ preventScroll: true });
    }

    function phase(title, subtitle, act) {
      const made = element("button", { type: "button" }, element("b", {}, title), element("span", {}, subtitle));
      made.addEventListener("click", () => {
        stop();
        act();
      });
      return made;
    }

    function toggle(icon, label, act) {
      const made = button(icon, label, () => {
        const on = made.getAttribute("aria-pressed") !== "true";
        made.setAttribute("aria-pressed", on);
        act(on);
      });
      made.setAttribute("aria-pressed", false);
      return made;
    }

    function button(icon, label, act) {
      const picture = svg("svg", { viewBox: "0 0 24 24", "aria-hidden": true }, svg("path", { d: ICONS[icon] }));
      const made = element("button", { type: "button", class: icon, title: label, "aria-label": label }, picture);
      made.addEventListener("click", () => {
        if (!["play", "full", "repeat"].includes(icon)) stop();
        act();
      });
      return made;
    }

    function codeRow(row, index) {
      if (row.file) return element("li", { class: "file" }, row.file);
      if (row.gap) return element("li", { class: "gap", "aria-label": "lines left out" }, "⋮");
      const made = element("li", {}, element("span", { class: "number" }, String(row.number)), element("code", {}, row.text));
      if (data.nodes.some((node) => node.rows.includes(index))) {
        made.classList.add("ran");
        made.addEventListener("click", () => {
          const lit = frames.flatMap((frame, at) => (rowsOf(frame).includes(index) ? [at] : []));
          stop();
          show(lit.find((at) => at > current) ?? lit[0]);
        });
      }
      return made;
    }

    // ---- the tape, and JAX's programs beside it ----

    function splitter() {
      const made = element("button", { type: "button", "aria-pressed": false }, "Beside JAX's programs");
      made.addEventListener("click", toggleSplit);
      return element("div", { class: "modes split-mode" }, made);
    }

    function setSplit(on) {
      splitting = on;
      player.classList.toggle("split", splitting);
      player.querySelector(".split-mode button").setAttribute("aria-pressed", splitting);
    }

    function toggleSplit() {
      setSplit(!splitting);
      arranged = "";
      arrange();
      refresh();
    }

    function tapeRows() {
      const [start, ...forward] = data.frames.slice(0, turn);
      const given = `given ${start.sources.map((index) => data.arrays[index].name).join(", ")}`;
      const operations = forward.map(({ said, node }) => [said, said, node]);
      return [[given, given, null], ...operations, [`target ${data.of}`, data.of, null]];
    }

    function listing(said, by, rows) {
      const made = rows.map(([text, whole, node]) => {
        const row = element("li", { title: whole }, element("code", {}, text));
        row.addEventListener("click", () => {
          const lit = frames.flatMap((frame, at) => (node !== null && frame.node === node ? [at] : []));
          stop();
          if (lit.length) show(lit.find((at) => at > current) ?? lit[0]);
        });
        return row;
      });
      const list = element("ol", {}, ...made);
      const box = element("section", { class: "listing", "aria-label": said }, element("h3", {}, said, " ", element("code", {}, by)), list);
      return { box, list, rows: made, nodes: rows.map(([, , node]) => node) };
    }

    /** Lights in each listing what belongs to this frame: forward the jaxpr and its linear part, backward that and its transposed. */
    function lightRows(frame) {
      const backward = isBackward();
      const shown = backward ? [0, 2, 3] : [0, 1, 2];
      listings.forEach(({ box, list, rows, nodes }, which) => {
        const end = nodes.length - 1;
        const first = frame.kind === "start" ? 0 : frame.kind === "seed" && which === 3 ? 0 : end;
        const found = frame.node === undefined ? [first] : nodes.flatMap((node, i) => (node === frame.node ? [i] : []));
        const lit = shown.includes(which) && (frame.kind !== "end" || which === 3 || which === 0) ? found : [];
        rows.forEach((row, i) => row.classList.toggle("lit", lit.includes(i)));
        box.classList.toggle("ahead", which === 3 && !backward);
        if (splitting && lit.length) reveal(list, rows[lit[0]], rows[lit[lit.length - 1]], false);
      });
    }

    // ---- stepping ----

    function onKey(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const target = event.composedPath()[0];
      if (target.type === "number") return event.stopPropagation(); // a prediction is typed
      if (target.localName === "select") return;
      if (event.key === "PageDown" || event.key === "PageUp") return onPageKey(event);
      if (event.key === " ") {
        if (target.localName === "button") return; // it presses the button
        timer === null ? run() : stop();
      } else if (event.key === "f" && full.length) {
        toggleFull();
      } else if (event.key === "o") {
        open();
      } else if (event.key === "j" && data.split) {
        toggleSplit();
      } else if (event.key === "Escape" && depth) {
        within.leave();
      } else {
        const act = { ArrowRight: () => step(1), ArrowLeft: () => step(-1), Home: () => show(0), End: () => show(last) }[event.key];
        if (act === undefined) return;
        stop();
        act();
      }
      event.preventDefault();
      event.stopPropagation(); // an exported slide would move on
    }

    /** The keys of a presenter's clicker: they step, and at the ends they are left to what is around. */
    function onPageKey(event) {
      const by = { PageDown: 1, PageUp: -1 }[event.key];
      if (by === undefined || event.defaultPrevented || (by > 0 ? current === last && !covered : current === 0)) return;
      stop();
      step(by);
      event.preventDefault();
      event.stopImmediatePropagation();
    }

    function toggleFull() {
      shadow.fullscreenElement ? document.exitFullscreen() : shell.requestFullscreen();
    }

    function run() {
      stop();
      if (current === last) show(0);
      timer = setInterval(() => {
        if (current < last || covered) step(1);
        else if (repeat.getAttribute("aria-pressed") === "true") show(0);
        else stop();
      }, PAUSE / speed.value);
      playing(true);
    }

    function stop() {
      clearInterval(timer);
      timer = null;
      playing(false);
    }

    /** One step; of a covered one the result first. */
    function step(by) {
      if (by > 0 && covered) return uncover();
      show(current + by, by > 0);
    }

    function uncover(said = "") {
      if (!covered) return;
      covered = false;
      verdict = said;
      refresh();
    }

    function setMode(forward) {
      stop();
      forwardMode = forward;
      frames = forward ? [...data.frames.slice(0, turn), { kind: "jvp" }] : data.frames;
      last = frames.length - 1;
      slider.max = last;
      phases.replaceChildren(...(forward ? [together] : passes));
      modes.forEach((made, i) => made.setAttribute("aria-pressed", Boolean(i) === forward));
      player.classList.toggle("tangents", forward);
      if (!player.isConnected) return;
      arranged = ""; // the heights are others
      arrange();
      show(current);
    }

    /** The step, as it stands in a link. */
    function place() {
      return `${forwardMode ? "forward-" : ""}${current}`;
    }

    function go(place) {
      const forward = place.startsWith("forward-");
      if (forward !== forwardMode && tangents.size) setMode(forward);
      show(Number(place.replace("forward-", "")));
    }

    /** Opens what the operation of this step is made of. */
    function open(node = frames[current].node) {
      const inside = data.nodes[node]?.inside;
      if (inside) within.enter(inside, `Inside ${data.nodes[node].label}`);
      return Boolean(inside);
    }

    function playing(on) {
      buttons.play.querySelector("path").setAttribute("d", ICONS[on ? "pause" : "play"]);
      buttons.play.title = on ? "Pause" : "Play";
      buttons.play.setAttribute("aria-label", buttons.play.title);
    }

    function show(at, onwards = false) {
      const before = current;
      current = Math.max(0, Math.min(last, at));
      covered = predicting && onwards && current !== before && ["forward", "backward"].includes(frames[current].kind);
      verdict = "";
      refresh();
      within.moved();
    }

    function isBackward() {
      return !forwardMode && current >= turn;
    }

    function refresh() {
      const frame = frames[current];
      const backward = isBackward();
      player.classList.toggle("backward", backward);
      passes.forEach((made, i) => made.setAttribute("aria-current", i === Number(backward) ? "step" : "false"));
      slider.value = current;
      together.setAttribute("aria-current", "step");
      slider.setAttribute("aria-valuetext", `${current} of ${last}, ${backward ? "backward" : "forward"}`);
      counter.textContent = `${current} / ${last}`;
      dye();
      const focused = shadow.activeElement;
      buttons.first.disabled = buttons.back.disabled = current === 0;
      buttons.next.disabled = buttons.last.disabled = current === last;
      if (focused?.disabled) player.focus({ preventScroll: true }); // a button that is off would swallow the keys
      now.replaceChildren(...told(frame));
      fit();
      const lit = rowsOf(frame);
      rows.forEach((row, i) => row.classList.toggle("lit", lit.includes(i)));
      if (lit.length) reveal(code, rows[lit[0]], rows[lit[lit.length - 1]], false);
      lightRows(frame);
      light(frame);
    }

    /** Makes the letters of the step smaller, down to what can be read, then matrices to colours, until all is on the screen. */
    function fit() {
      now.style.fontSize = "";
      now.classList.remove("tight");
      const size = parseFloat(getComputedStyle(now).fontSize);
      const over = () => now.scrollHeight > now.clientHeight + 1 || now.scrollWidth > now.clientWidth + 1;
      for (let smaller = size - 1; smaller >= SMALLEST && over(); smaller -= 1) now.style.fontSize = `${smaller}px`;
      now.classList.toggle("tight", over());
      now.scrollTop = 0;
    }

    function rowsOf(frame) {
      return frame.node === undefined ? [] : data.nodes[frame.node].rows;
    }

    /** Of each array its tangent, or its cotangent as far as the current frame; what is covered is not there yet. */
    function derivatives() {
      if (forwardMode) return tangents;
      const found = new Map();
      for (const frame of data.frames.slice(turn, current + !covered)) {
        for (const sum of frame.sums ?? []) found.set(sum.array, sum.after);
      }
      return found;
    }

    // ---- what is told of a frame ----

    function value(index, kind = "") {
      return shown(data.values[index], kind, scale);
    }

    function told(frame) {
      const array = (index) => data.arrays[index];
      const by = (index) => derivativeName(data.of, array(index).name, "cotangent");
      const along = (index) => derivativeName(array(index).name, "v", "tangent");
      const named = (index) => line(name(array(index).name), typed(data.values[array(index).value]), value(array(index).value));
      const moving = (index) => line(along(index), typed(data.values[tangents.get(index)]), value(tangents.get(index), "tangent"));
      const node = data.nodes[frame.node];
      const about = [];
      if (node?.round) about.push(element("p", { class: "note round" }, node.round));
      if (node?.count > 1) about.push(element("p", { class: "note" }, node.note));
      if (node?.inside) about.push(opener(frame.node));
      if (verdict) about.push(element("p", { class: "verdict", role: "status" }, verdict));

      if (frame.kind === "start") {
        if (!forwardMode) return [heading("What the gradient is taken with respect to"), ...frame.sources.map(named), hint()];
        const known = frame.sources.filter((index) => tangents.has(index));
        return [heading("The direction v: a tangent for each source"), ...known.map(moving), hint()];
      }
      if (frame.kind === "forward") {
        const outs = frame.outs.filter((index) => forwardMode && tangents.has(index));
        const made = [title(frame.said), ...about];
        if (covered) made.push(question(outs.length ? outs.map((index) => [along(index), tangents.get(index)]) : ofValues(frame)));
        else made.push(...frame.outs.map(named));
        if (!covered && outs.length && frame.pushed.length) {
          const terms = frame.pushed.map((why, i) => term(i ? "+" : "", ...reason(why)));
          const sum = element("div", { class: "equation reasons" }, ...terms, term("=", value(tangents.get(outs[0]), "tangent")));
          made.push(heading("its tangent: what each input adds"), line(along(outs[0]), "", sum));
        } else if (!covered && outs.length) made.push(...outs.map(moving));
        if (frame.ins.length) made.push(element("div", { class: "given" }, heading("from"), ...frame.ins.map(named)));
        return made;
      }
      if (frame.kind === "seed") {
        if (!frame.sums.length) return [heading(`From ${data.of} nothing goes back to the sources`)];
        return [heading("The backward pass begins"), ...frame.sums.map((sum) => line(by(sum.array), "", equation(sum))), ...legend()];
      }
      if (frame.kind === "backward") {
        return [
          title(frame.said, "back through"),
          ...about,
          heading("the cotangent of its result is complete"),
          ...frame.ins.map(([index, found]) => line(by(index), typed(data.values[found]), value(found, "cotangent"))),
          ...(covered
            ? [question(frame.sums.map((sum) => [by(sum.array), sum.after]))]
            : [
                heading("the cotangents of its inputs: cotangent × local derivative is added"),
                ...frame.sums.map((sum) => line(by(sum.array), "", equation(sum))),
              ]),
          ...legend(),
        ];
      }
      if (frame.kind === "jvp") {
        const { targets, product } = data.forward_mode;
        if (!targets.length) return [heading(`No tangent reaches ${data.of}`)];
        const same = product === null ? [] : [heading("the same by reverse mode: the gradient, times v, summed"), value(product)];
        return [heading("The derivative in the direction v"), ...targets.map(moving), ...same, ...legend()];
      }
      return [
        heading("The gradient"),
        ...frame.gradients.map((found) => {
          const label = derivativeName(data.of, found.name, "cotangent");
          if (found.value === null) return line(label, "", element("span", { class: "none" }, "None: no cotangent came back"));
          return line(label, typed(data.values[found.value]), value(found.value, "cotangent"));
        }),
        ...legend(),
      ];

      function ofValues({ outs }) {
        return outs.map((index) => [name(array(index).name), array(index).value]);
      }
    }

    /** A sum of contributions, each with its reason. */
    function equation({ before, parts, whys, after, count }) {
      const made = element("div", { class: `equation${whys.some(Boolean) ? " reasons" : ""}` });
      if (before !== null) made.append(term("", value(before, "before")));
      parts.forEach((part, i) => {
        const why = whys[i] ? [...reason(whys[i]), "="] : [];
        made.append(term(i || before !== null ? "+" : "", ...why, value(part, "part")));
      });
      if (!parts.length) made.append(`${before === null ? "" : "+ "}${count} contribution${count === 1 ? "" : "s"}`);
      if (before !== null || parts.length !== 1) made.append(term("=", value(after, "cotangent")));
      return made;
    }

    /** What is multiplied with the local derivative, and that; where it is not formed, the rule. */
    function reason(why) {
      if (why.value === null) {
        const rule = why.rule || `${forwardMode ? "Jacobian–vector" : "vector–Jacobian"} product`;
        return [element("span", { class: "rule" }, rule), element("span", { class: "type" }, why.shapes)];
      }
      const factor = element("span", { class: "factor" }, element("span", { class: "rule" }, why.rule), value(why.value));
      const given = value(why.by, forwardMode ? "tangent" : "cotangent");
      const sides = why.matrix && forwardMode ? [factor, "·", given] : [given, why.matrix ? "·" : "×", factor];
      return why.sum ? ["Σ", ...sides] : sides;
    }

    /** Covers results; of a single number one can say what it will be. */
    function question(results) {
      const [[label, index]] = results;
      const { cells } = data.values[index];
      const single = results.length === 1 && cells?.length === 1 && cells[0].length === 1 && Number.isFinite(Number(cells[0][0]));
      const input = element("input", { type: "number", step: "any", "aria-label": "Your prediction" });
      const asked = element("form", { class: "question" }, ...results.map(([each]) => each), " = ", ...(single ? [input] : ["?"]));
      asked.append(element("button", { type: "submit" }, "Reveal"));
      asked.addEventListener("submit", (event) => {
        event.preventDefault();
        uncover(input.value && judged(Number(input.value), Number(cells[0][0])));
        player.focus({ preventScroll: true });
      });
      return asked;
    }

    function opener(node) {
      const { operations } = data.nodes[node].inside;
      const made = element("button", { type: "button", class: "open" }, `Look inside: ${operations} operations (key o)`);
      made.addEventListener("click", () => open(node));
      return made;
    }

    /** The one scale of colours, where there is a matrix on the page. */
    function legend() {
      if (!scale || !data.values.some(isMatrix)) return [];
      const most = short(String(scale), 3);
      const bar = element("span", { class: "bar", "aria-hidden": true });
      return [element("p", { class: "scale" }, `−${most}`, bar, most, element("span", {}, "one scale for all numbers: equal ones have one shade"))];
    }

    function hint() {
      const keys = [element("kbd", {}, "←"), " ", element("kbd", {}, "→")];
      return element("p", { class: "hint" }, "Press play, or step with the keys ", ...keys, " or a clicker");
    }

    // ---- the graph ----

    function arrange() {
      page = alone || shadow.fullscreenElement === shell;
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
      reserve(page && !narrow ? null : isAcross && !splitting ? panel : narrow || splitting ? now : null);
      fit();
      light(frames[current]);
    }

    /** Gives a box the height of the highest frame, so that nothing moves when one steps. */
    function reserve(box) {
      const uncovered = covered;
      covered = false;
      for (const each of [panel, now]) each.style.height = "";
      now.style.fontSize = "";
      now.classList.remove("tight");
      if (!box) return;
      now.setAttribute("aria-live", "off");
      box.style.height = "0px";
      const heights = frames.map((frame) => {
        now.replaceChildren(...told(frame));
        return now.scrollHeight;
      });
      covered = uncovered;
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
      const opens = node.inside ? " opens" : "";
      const kinds = `node ${node.kind}${opens}${isSource(node) ? " source" : ""}${node.carries ? " carries" : ""}${node.target ? " target" : ""}`;
      const group = svg("g", { class: kinds, transform: `translate(${x - middle} ${y - height / 2})` });
      const double = svg("g", { class: "double" });
      if (node.inside) {
        double.append(svg("rect", { x: 4, y: 4, width: width - 8, height: height - 8, rx: 5 }));
        double.append(svg("path", { class: "plus", d: `M${width - 8} ${-4}v16M${width - 16} 4h16` }));
      }
      const hint = node.inside ? `: a second click shows its ${node.inside.operations} operations` : "";
      const about = node.round ? ` (${node.round})` : "";
      group.append(svg("title", {}, node.label + about + hint), rect, double, ...texts, value, cotangent);
      group.addEventListener("click", () => {
        const at = frames.findIndex((frame, i) => frame.node === index && (forwardMode || i >= turn === isBackward()));
        stop();
        if (node.inside && at === current) open();
        else if (at >= 0) show(at);
      });
      return { group, value, cotangent, width, height, top: texts.length };
    }

    /** Brings the graph to the current frame. */
    function light(frame) {
      if (!drawn) return;
      const backward = isBackward();
      const found = derivatives();
      const ended = frame.kind === "end";
      data.nodes.forEach((node, i) => {
        const { group, value, cotangent, width, height, top } = drawn.nodes[i];
        const there = backward || current >= node.since + (covered && !backward && frame.node === i);
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
          value.append(thumb(told, half / 2 + (node.carries ? 4 : 0), y, area, scale));
          if (got.length) cotangent.append(thumb(data.values[found.get(index)], 1.5 * half - 4, y, area, scale));
          return;
        }
        const sign = told.cells ? " = " : ": ";
        const named = node.kind === "operation" ? clipped(data.arrays[index].name, NAME) + sign : "";
        const said = single ? named + brief(told) : `${node.arrays.length} values`;
        value.append(text("number", width / 2, top, said));
        if (got.length) {
          const many = `${got.length} ${forwardMode ? "tangents" : "cotangents"}`;
          const said = got.length === 1 ? brief(data.values[found.get(got[0])]) : many;
          cotangent.append(text("number", width / 2, top + 1, `∂ ${said}`));
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
  function shown(value, kind, scale) {
    if (!value.cells) return element("span", { class: `large ${kind}` }, value.text || value.type);
    if (!isMatrix(value)) return element("span", { class: `single ${kind}`, title: value.cells[0][0] }, short(value.cells[0][0]));
    const dense = value.cells.length > NUMBERS || value.cells[0].length > NUMBERS;
    const colour = colours(scale);
    const cell = (text) => {
      const made = element("td", { title: text }, dense ? "" : short(text));
      const found = colour(text);
      if (found) made.style.backgroundImage = `linear-gradient(${found}, ${found})`;
      else made.className = "strange";
      return made;
    };
    const rows = value.cells.map((row) => element("tr", {}, ...row.map(cell)));
    const table = element("table", { class: `matrix ${kind}${dense ? " dense" : ""}` }, element("tbody", {}, ...rows));
    if (!dense) return table;
    const range = element("span", { class: "range" }, value.text + (value.reduced ? "; of each block the largest" : ""));
    return element("div", { class: "whole" }, table, range);
  }

  /** A matrix as small squares around a place in the graph. */
  function thumb(value, x, y, [width, height], scale) {
    const rows = value.cells.length;
    const columns = value.cells[0].length;
    const size = Math.min(14, width / columns, height / rows);
    const colour = colours(scale);
    const made = svg("g", { class: "thumb", transform: `translate(${x - (size * columns) / 2} ${y - (size * rows) / 2})` });
    made.append(svg("rect", { class: "frame", x: -1.5, y: -1.5, width: size * columns + 3, height: size * rows + 3 }));
    value.cells.forEach((row, i) =>
      row.forEach((text, j) => {
        made.append(svg("rect", { x: j * size, y: i * size, width: size, height: size, fill: colour(text) ?? "#888" }));
      }),
    );
    return made;
  }

  /** Blue below zero, red above (a complex number by its magnitude), the stronger the further from it; nothing for what is no finite number. */
  function colours(scale) {
    return (text) => {
      const found = number(text);
      if (!Number.isFinite(found)) return null;
      const strength = Math.min(1, Math.abs(found) / (scale || 1)) ** FADING;
      return `rgba(${found < 0 ? "0,90,181" : "220,50,32"},${(0.62 * strength).toFixed(3)})`;
    };
  }

  /** What is said to a prediction. */
  function judged(said, right) {
    const close = Math.abs(said - right) <= 0.01 * Math.abs(right) + 1e-9;
    return close ? `Right: ${said}.` : `You said ${said}.`;
  }

  function number(text) {
    if (isComplex(text)) return Math.hypot(...text.match(PARTS));
    return text === "True" ? 1 : text === "False" ? 0 : Number(text);
  }

  function isComplex(text) {
    return /\dj\)?$/.test(text) && !/nan|inf/.test(text);
  }

  /** A number in few characters; the whole of it is in the title. */
  function short(text, digits = 5) {
    if (isComplex(text)) return text.replace(PARTS, (part) => short(part, digits));
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

  function derivativeName(of, by, kind) {
    return element("span", { class: `name ${kind}` }, `∂${of}/∂${by}`);
  }

  function term(sign, ...parts) {
    return element("span", { class: "term" }, sign, ...parts);
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
