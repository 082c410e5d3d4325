function metalnbStepper(name, data) {
  const {texts, places, size} = data, steps = data.ways.map(w => data.tracks[w]);
  const make = (tag, cls, text) => {
    const e = document.createElement(tag);
    if (cls) e.className = cls;
    if (text !== undefined) e.textContent = text;
    return e;
  };
  const icon = path => `<svg viewBox="0 0 16 16"><path d="${path}"/></svg>`;
  const lines = [...new Set(places.map(p => p[0]))].sort((a, b) => a - b);
  const colors = ["#2f6db8", "#a85a14", "#1f7a55", "#7a4cc0", "#b03068", "#1d7485", "#75660f", "#b23a37"];
  const color = line => colors[lines.indexOf(line) % colors.length];
  const element = (name, shape, i) => `${name}[${shape.length > 1 ? `${Math.floor(i / shape.at(-1))}][${i % shape.at(-1)}` : i}]`;
  const position = t => {
    const at = [t % size[0], Math.floor(t / size[0]) % size[1], Math.floor(t / (size[0] * size[1]))];
    return at.slice(0, size[2] > 1 ? 3 : size[1] > 1 ? 2 : 1).join(", ");
  };
  // A two-dimensional threadgroup is drawn with a row for each y; otherwise each row is a SIMD-group.
  const plane = size[1] > 1 && size[0] <= 64;
  const perRow = plane ? size[0] : 32;
  const barriers = [...new Set(steps.flatMap(s => s.filter(x => x[2]).map(x => x[1])))].sort((a, b) => a - b);

  // The number of the step that a thread is about to take before tick `at`; after its end, the number of its steps.
  const pending = (t, at) => {
    let low = 0, high = steps[t].length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (steps[t][middle][1] >= at) high = middle; else low = middle + 1;
    }
    return low;
  };
  // The variables at each step of a thread: those of the function's previous step, and the changes.
  const variablesOfThread = {};
  const variables = t => variablesOfThread[t] ??= (() => {
    const frames = new Map();
    return steps[t].map((step, k) => {
      const values = new Map(frames.get(step[3]) || []);
      const row = data.changes[t][k];
      for (let i = 0; i < row.length; i += 2) values.set(row[i], row[i + 1]);
      frames.set(step[3], values);
      return values;
    });
  })();

  const attach = root => {
    let thread = data.thread, tick = 0, markedFrom = 0;  // changes from tick `markedFrom` on are marked
    const aim = data.aim && {memory: data.aim[0], element: data.aim[1], tick: data.aim[2]};
    root.dataset.ready = "1";
    root.textContent = "";
    root.setAttribute("role", "group");
    root.setAttribute("aria-label", "stepper: left and right step, up and down choose a thread, Page Up and Page Down go to barriers");

    // ---- The bar.
    const bar = make("div", "mt-bar"), slide = make("div", "mt-slide"), range = make("input"), count = make("span", "mt-count");
    const button = (label, path, onClick) => {
      const b = make("button");
      b.type = "button";
      b.title = label;
      b.setAttribute("aria-label", label);
      b.innerHTML = icon(path);
      b.addEventListener("click", onClick);
      bar.append(b);
    };
    range.type = "range";
    range.min = 0;
    range.max = data.ticks;
    range.setAttribute("aria-label", "tick");
    count.setAttribute("aria-live", "polite");
    range.addEventListener("input", () => goTo(+range.value));
    slide.append(range);
    for (const b of barriers) {
      const mark = make("i");
      mark.style.left = `calc(8px + (100% - 16px) * ${b / Math.max(1, data.ticks)})`;
      slide.append(mark);
    }
    const stops = () => [...steps[thread].map(s => s[1]), data.ticks];
    const stepForward = () => goTo(stops().find(s => s > tick) ?? data.ticks);
    const stepBack = () => goTo(stops().filter(s => s < tick).pop() ?? 0);
    const nextBarrier = () => goTo(barriers.find(b => b > tick) ?? data.ticks);
    const lastBarrier = () => goTo(barriers.filter(b => b < tick).pop() ?? 0);
    button("to the start (Home)", "M2 2h2v12H2zM14 2v12L5 8z", () => goTo(0));
    if (barriers.length) button("back to a barrier (Shift ←)", "M15 2v12l-6-6zM8 2v12L2 8zM0 2h2v12H0z", lastBarrier);
    button("back a statement (←)", "M12 2v12L3 8z", stepBack);
    button("on by a statement (→)", "M4 2v12l9-6z", stepForward);
    if (barriers.length) button("on to a barrier (Shift →)", "M1 2v12l6-6zM8 2v12l6-6zM14 2h2v12h-2z", nextBarrier);
    button("to the end (End)", "M12 2h2v12h-2zM2 2v12l9-6z", () => goTo(data.ticks));
    const toAim = () => {
      thread = data.thread;
      goTo(aim.tick);
    };
    if (aim) {
      button("to the write that was asked for (W)", "M7 0h2v3h-2zM7 13h2v3h-2zM0 7h3v2h-3zM13 7h3v2h-3zM8 4a4 4 0 1 1 0 8a4 4 0 1 1 0-8z", toAim);
      const mark = make("i", "mt-aim");
      mark.style.left = `calc(8px + (100% - 16px) * ${aim.tick / Math.max(1, data.ticks)})`;
      slide.append(mark);
    }
    bar.append(slide, count);

    // ---- Source and variables.
    const panes = make("div", "mt-panes"), source = make("div", "mt-source"), side = make("div", "mt-side");
    const rows = {};
    for (let n = data.lines[0]; n <= data.lines[1]; ++n) {
      const row = make("div", "mt-row"), text = make("span");
      text.innerHTML = data.source[n - 1] || " ";
      row.append(make("b", "", n), make("i"), text);
      row.dataset.line = n;
      rows[n] = row;
      source.append(row);
    }
    panes.append(source, side);

    // ---- The strip of threads.
    const strip = make("div", "mt-block"), stripTitle = make("div", "mt-title"), grid = make("div", steps.length > 256 ? "mt-strip mt-many" : "mt-strip");
    const cells = [];
    for (let first = 0; first < steps.length; first += perRow) {
      const row = make("div", "mt-simd");
      row.append(make("small", "", plane ? position(first).split(", ").slice(1).join(", ") : first));
      for (let t = first; t < Math.min(first + perRow, steps.length); ++t) {
        const cell = make("button", "mt-t");
        cell.type = "button";
        cell.tabIndex = -1;
        cell.dataset.thread = t;
        cell.addEventListener("click", () => choose(t));
        cells.push(cell);
        row.append(cell);
      }
      grid.append(row);
    }
    const key = make("div", "mt-key");
    for (const [cls, text] of [["", "runs this line"], ["mt-wait", "waits for its SIMD-group"],
                               ["mt-bar-wait", "waits at a barrier"], ["mt-ended", "has ended"]]) {
      const part = make("span"), cell = make("span", `mt-t ${cls}`);
      cell.style.setProperty("--c", "#6a87a8");
      part.append(cell, text);
      key.append(part);
    }
    strip.append(stripTitle, grid, key);

    // ---- Memory.
    const memory = make("div", "mt-block mt-memory");
    const pictures = data.memory.map(m => {
      const box = make("div", "mt-mem"), title = make("div", "mt-title"), grid = make("div", "mt-grid");
      box.dataset.memory = m.name;
      memory.append(box);
      title.append(make("b", "", m.name), ` ${m.space} ${m.type}`, 
        m.image ? `, ${m.image.shape.join(" × ")}` : m.shape.map(n => `[${n}]`).join(""));
      if (m.image) {
        const image = metalnbImage(make, m, texts);
        box.append(title, ...image.nodes);
        return {m, image};
      }
      const total = m.shape.reduce((a, b) => a * b, 1);
      // Structs and vectors are long, so a row has fewer of them; one that fills a row wraps to the next line.
      const longest = [...m.initial || [], ...m.writes.filter((_, j) => j % 4 === 3)]
        .reduce((most, v) => Math.max(most, v < 0 ? 1 : texts[v].length), 1);
      const perLine = longest > 12 ? Math.max(1, 2 ** Math.floor(Math.log2(112 / longest))) : 16;
      const flat = m.shape.length === 1 && plane && total % perRow === 0 && total > perRow && perLine > 1;
      const columns = m.columns ?? (m.shape.length > 1 ? m.shape.at(-1) : flat ? perRow : Math.min(total, perLine));
      const least = longest > 12 && longest < 112 ? "max-content" : 0;
      if (columns > 20) grid.classList.add("mt-small");
      if (perLine === 1) grid.classList.add("mt-records");
      grid.style.gridTemplateColumns = `max-content repeat(${columns},minmax(${least},auto))`;
      const cells = [];
      for (let i = 0; i < total; ++i) {
        if (i % columns === 0) grid.append(make("small", "", m.shape.length > 1 ? i / columns : i));
        const cell = make("div", "mt-cell");
        cell.dataset.index = i;
        cells.push(cell);
        grid.append(cell);
      }
      box.append(title, grid);
      return {m, cells};
    });
    if (pictures.length) {
      const key = make("div", "mt-key");
      for (const [cls, text] of [["mt-new", "changed by the last step"], ["mt-read", "this statement reads it"],
                                 ["mt-writes", "this statement writes it"], ["mt-mine", "this thread wrote it"], ...aim ? [["mt-wrong", "asked for"]] : []]) {
        const part = make("span");
        part.append(make("span", `mt-swatch ${cls}`), text);
        key.append(part);
      }
      if (memory.querySelector(".mt-image")) {
        const part = make("span");
        part.append(make("span", "mt-swatch mt-others"), "other threads read or write it now");
        key.append(part);
      }
      const small = memory.querySelector(".mt-grid:not(.mt-small)") === null;
      if (memory.querySelector(".mt-grid")) key.append(make("span", "", `${small ? "in a cell's tooltip" : "below a value"}: the thread that wrote it last`));
      memory.append(key);
    }
    root.append(bar, panes, strip);
    if (pictures.length) root.append(memory);

    // ---- Drawing a state.
    const mark = (row, column, width) => {
      // Wrap the statement's characters in <mark>, whatever the highlighter's spans are.
      const text = row.lastChild;
      text.innerHTML = data.source[row.dataset.line - 1] || " ";
      const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
      const parts = [];
      for (let node, at = 0; (node = walker.nextNode()); at += node.length) {
        const from = Math.max(0, column - 1 - at), to = Math.min(node.length, column - 1 + width - at);
        if (from < to) parts.push([node, from, to]);
      }
      for (const [node, from, to] of parts) {
        const part = document.createRange();
        part.setStart(node, from);
        part.setEnd(node, to);
        part.surroundContents(make("mark"));
      }
    };
    let markedRow = null;

    const drawSource = (threadStates, k) => {
      if (markedRow) {
        markedRow.classList.remove("mt-here");
        markedRow.lastChild.innerHTML = data.source[markedRow.dataset.line - 1] || " ";
        markedRow = null;
      }
      const threadCounts = {};
      for (const p of threadStates) if (p.line) threadCounts[p.line] = (threadCounts[p.line] || 0) + 1;
      for (const [n, row] of Object.entries(rows)) {
        const badge = row.children[1];
        badge.textContent = "";
        if (threadCounts[n]) {
          const dot = make("u");
          dot.style.setProperty("--c", color(+n));
          badge.append(threadCounts[n], dot);
        }
      }
      if (k < steps[thread].length) {
        const [line, column, width] = places[steps[thread][k][0]];
        markedRow = rows[line];
        markedRow.classList.add("mt-here");
        mark(markedRow, column, width);
        const top = markedRow.offsetTop, view = source.clientHeight;
        if (top < source.scrollTop + 20 || top > source.scrollTop + view - 50) source.scrollTop = top - view / 2;
      }
    };

    const drawSide = k => {
      side.textContent = "";
      const title = make("div", "mt-title");
      title.append("thread ", make("b", "", position(thread)));
      side.append(title);
      if (!data.changes[thread]) {
        side.append(make("div", "mt-title", "The page does not hold this thread's variables: trace it with thread=."));
        return;
      }
      const all = variables(thread);
      const show = (at, isCurrent) => {
        const table = make("div", "mt-vars"), place = places[steps[thread][at][0]];
        const row = isCurrent ? data.changes[thread][at] : [];
        const changed = new Set(row.filter((_, i) => i % 2 === 0));
        for (const n of place[4]) {
          const cls = changed.has(n) && at ? "mt-new" : "";
          const value = make("span", cls, texts[all[at].get(n)]);
          value.dataset.variable = texts[n];
          table.append(make("span", cls, texts[n]), value);
        }
        side.append(table);
      };
      if (k === steps[thread].length) {
        title.append(" has ended");
        if (k) show(k - 1, false);
        return;
      }
      const step = steps[thread][k];
      title.append(step[2] && tick <= step[1] ? " waits at a barrier" : step[1] > tick ? " waits for its SIMD-group" : "");
      let at = k;
      const name = at => texts[places[steps[thread][at][0]][3]];
      if (step[3] >= 0) side.append(make("div", "mt-title", `in ${name(at)}`));
      show(at, true);
      const accesses = data.touches[thread][k];
      if (accesses.length) {
        const list = make("div", "mt-accesses");
        for (const [m, index, written, text] of accesses) {
          const item = make("div"), what = element(data.names[m], data.shapes[m], index);
          item.append(make("span", "", written ? "writes " : "reads "), what, make("span", "", " = "), texts[text]);
          list.append(item);
        }
        side.append(list);
      }
      while ((at = steps[thread][at][3]) >= 0) {
        side.append(make("div", "mt-title", `called by ${name(at)}, line ${places[steps[thread][at][0]][0]}`));
        show(at, false);
      }
    };

    const stateClasses = ["mt-run", "mt-wait", "mt-bar-wait", "mt-ended"];
    const drawStrip = threadStates => {
      const tally = [0, 0, 0, 0];
      threadStates.forEach((p, t) => {
        const cell = cells[t];
        cell.className = `mt-t ${stateClasses[p.state]}${t === thread ? " mt-me" : ""}`;
        cell.style.setProperty("--c", p.line ? color(p.line) : "transparent");
        cell.textContent = "";
        if (p.line) cell.append(make("em", "", p.line));
        const how = ["runs line", "waits for its SIMD-group at line", "waits at the barrier of line", "has ended"][p.state];
        cell.title = `thread ${position(t)} ${how}${p.line ? ` ${p.line}` : ""}`;
        ++tally[p.state];
      });
      stripTitle.textContent = "";
      const phrases = ["run", "wait for their SIMD-group", "at a barrier", "ended"];
      stripTitle.append(make("b", "", "threads "), tally.map((n, i) => n && `${n} ${phrases[i]}`).filter(Boolean).join(" · "));
    };

    // The accesses of a thread's statement: memory, element, whether it is written.
    const accessesOf = (t, k) => k < steps[t].length && data.touches[t] ? data.touches[t][k] : [];
    // On an image: the last write, the other threads' current accesses, and the thread's own on top.
    const marks = (m, reads, threadStates) => {
      const elements = [], w = m.writes;
      for (let i = 0; i < w.length && w[i] < tick; i += 4) if (w[i] >= markedFrom) elements.push([w[i + 2], "mt-new"]);
      threadStates.forEach((p, t) => {
        if (p.state || t === thread) return;
        for (const [n, index] of accessesOf(t, p.step)) if (n === m.number) elements.push([index, "mt-others"]);
      });
      for (const [n, index, written] of reads) if (n === m.number) elements.push([index, written ? "mt-writes" : "mt-read"]);
      if (aim?.memory === m.number) elements.push([aim.element, "mt-wrong"]);
      return elements;
    };
    const drawMemory = (k, threadStates) => {
      const reads = accessesOf(thread, k);
      for (const {m, cells, image} of pictures) {
        if (image) {
          image.draw(tick, marks(m, reads, threadStates), position);
          continue;
        }
        const value = cells.map((_, i) => m.initial ? m.initial[i] : -1), writer = cells.map(() => -1);
        const changedCells = new Set();
        const w = m.writes;
        for (let i = 0; i < w.length && w[i] < tick; i += 4) {
          value[w[i + 2]] = w[i + 3];
          writer[w[i + 2]] = w[i + 1];
          if (w[i] >= markedFrom) changedCells.add(w[i + 2]);
        }
        const read = new Set(reads.filter(r => r[0] === m.number && !r[2]).map(r => r[1]));
        const writes = new Set(reads.filter(r => r[0] === m.number && r[2]).map(r => r[1]));
        cells.forEach((cell, i) => {
          cell.className = "mt-cell" + (value[i] < 0 ? " mt-none" : "") + (changedCells.has(i) ? " mt-new" : "") +
            (writes.has(i) ? " mt-writes" : "") + (read.has(i) ? " mt-read" : "") + (writer[i] === thread ? " mt-mine" : "") +
            (aim?.memory === m.number && aim.element === i ? " mt-wrong" : "");
          cell.textContent = value[i] < 0 ? "·" : texts[value[i]];
          const writerName = writer[i] < 0 ? "" : `${position(writer[i])}`;
          cell.append(make("s", "", writerName || "\u00a0"));
          cell.title = element(m.name, m.shape, i) + (writerName ? `, written by thread ${writerName}` : value[i] < 0 ? ", never written" : "");
        });
      }
    };

    const goTo = to => {
      markedFrom = to > tick ? tick : stops().filter(s => s < to).pop() ?? 0;
      tick = Math.max(0, Math.min(data.ticks, to));
      draw();
    };
    const draw = () => {
      const threadStates = steps.map((track, t) => {
        const k = pending(t, tick);
        if (k === track.length) return {state: 3, line: 0};
        return {state: track[k][2] ? 2 : track[k][1] > tick ? 1 : 0, line: places[track[k][0]][0], step: k};
      });
      const k = pending(thread, tick);
      range.value = tick;
      count.textContent = `tick ${tick} of ${data.ticks}`;
      range.style.setProperty("--part", tick / Math.max(1, data.ticks));
      root.dataset.tick = tick;
      root.dataset.thread = thread;
      drawSource(threadStates, k);
      drawSide(k);
      drawStrip(threadStates);
      drawMemory(k, threadStates);
    };
    const choose = t => {
      thread = Math.max(0, Math.min(steps.length - 1, t));
      draw();
    };
    root.addEventListener("keydown", event => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const action = {
        ArrowRight: event.shiftKey ? nextBarrier : stepForward, ArrowLeft: event.shiftKey ? lastBarrier : stepBack,
        ArrowDown: () => choose(thread + (plane ? perRow : 1)), ArrowUp: () => choose(thread - (plane ? perRow : 1)),
        ".": () => choose(thread + 1), ",": () => choose(thread - 1),
        Home: () => goTo(0), End: () => goTo(data.ticks), PageDown: nextBarrier, PageUp: lastBarrier,
        w: aim && toAim,
      }[event.key];
      if (!action) return;
      event.preventDefault();
      event.stopPropagation();
      action();
    });
    goTo(aim ? aim.tick : steps[thread].length ? steps[thread][0][1] : 0);
  };
  for (const root of document.querySelectorAll(`[id="${name}"]`)) if (!root.dataset.ready) attach(root);
}
