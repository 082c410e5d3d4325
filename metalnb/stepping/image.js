// A two-dimensional array as an image, with the elements that the threads' statements access marked on it.
function metalnbImage(make, m, texts) {
  const {shape, per, first, steps, size: [rows, columns, parts], levels} = m.image;
  const bytes = Uint8Array.from(atob(m.image.values), c => c.charCodeAt(0));
  const before = levels ? bytes : new Float32Array(bytes.buffer);
  const box = make("div", "mt-image"), canvas = make("canvas"), told = make("div", "mt-told");
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const scale = Math.max(1, Math.min(12, Math.floor(384 / columns), Math.floor(288 / rows)));
  canvas.width = columns;
  canvas.height = rows;
  box.style.width = `${columns * scale}px`;
  box.style.aspectRatio = `${columns} / ${rows}`;
  svg.setAttribute("viewBox", `0 0 ${columns} ${rows}`);
  svg.setAttribute("preserveAspectRatio", "none");
  box.append(canvas, svg);

  // An element's position in the picture; -1 if it is not drawn.
  const place = index => {
    const pixel = Math.floor(index / per);
    const y = Math.floor(pixel / shape[1]) - first[0], x = pixel % shape[1] - first[1];
    const row = Math.floor(y / steps[0]), column = Math.floor(x / steps[1]);
    return y < 0 || x < 0 || row >= rows || column >= columns ? -1 : row * columns + column;
  };
  const exact = index => steps[0] * steps[1] === 1 || (Math.floor(index / per / shape[1]) - first[0]) % steps[0] === 0 &&
    (Math.floor(index / per) % shape[1] - first[1]) % steps[1] === 0;
  const numbers = text => (text.match(/[-\d.e+]+|inf|nan/g) || []).map(Number);

  let values = before, writers = new Map();
  const paint = () => {
    let low = levels && parts > 1 ? 0 : Infinity, high = levels && parts > 1 ? 255 : -Infinity;
    if (!levels && parts > 1) [low, high] = [0, 1];
    for (const v of values) if (Number.isFinite(v)) [low, high] = [Math.min(low, v), Math.max(high, v)];
    const context = canvas.getContext("2d"), picture = context.createImageData(columns, rows);
    const level = v => 255 * (v - low) / (high > low ? high - low : 1);
    for (let i = 0; i < rows * columns; ++i) {
      for (let c = 0; c < 3; ++c) picture.data[4 * i + c] = level(values[i * parts + (parts > 1 ? c : 0)]);
      picture.data[4 * i + 3] = Number.isFinite(values[i * parts]) ? 255 : 0;
    }
    context.putImageData(picture, 0, 0);
    const end = v => short(Math.abs(v) < (high - low) / 1000 ? 0 : v);
    const range = parts > 1 || low > high ? "" : low === high ? `all ${short(low)}` : `black ${end(low)}, white ${end(high)}`;
    legend = [drawn.join(", "), range].filter(Boolean).join("; ") || "\u00a0";
    told.textContent = legend;
  };
  const short = v => String(+v.toPrecision(4));
  let legend = "";
  const strong = new Set(["mt-read", "mt-writes", "mt-wrong"]);
  const mark = (index, cls) => {
    const at = place(index);
    if (at < 0) return;
    const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [name, value] of [["x", at % columns], ["y", Math.floor(at / columns)], ["width", 1], ["height", 1],
                                 ["class", cls], ["data-index", index]]) rect.setAttribute(name, value);
    svg.append(rect);
  };

  svg.addEventListener("pointermove", event => {
    const area = svg.getBoundingClientRect();
    const column = Math.min(columns - 1, Math.floor((event.clientX - area.x) / area.width * columns));
    const row = Math.min(rows - 1, Math.floor((event.clientY - area.y) / area.height * rows));
    const y = first[0] + row * steps[0], x = first[1] + column * steps[1], at = row * columns + column;
    const value = [...values.slice(at * parts, at * parts + parts)].map(short).join(", ");
    const who = writers.get(at);
    told.textContent = `row ${y}, column ${x}: ${value}${who === undefined ? "" : `, written by thread ${who}`}`;
  });
  svg.addEventListener("pointerleave", () => { told.textContent = legend; });

  // Describes which part of the array is drawn.
  const span = (what, at, count, step, all) => [
    count * step < all ? `${what} ${at} to ${Math.min(all, at + count * step) - 1}` : "",
    step > 1 ? `one in ${step} ${what}` : "",
  ];
  const drawn = [...span("rows", first[0], rows, steps[0], shape[0]), ...span("columns", first[1], columns, steps[1], shape[1])]
    .filter(Boolean);

  // Draws the values written before a tick, and marks: pairs of an element and a class, the last on top.
  const draw = (tick, marks, position) => {
    values = before.slice();
    writers = new Map();
    const w = m.writes;
    for (let i = 0; i < w.length && w[i] < tick; i += 4) {
      const at = place(w[i + 2]);
      if (at < 0) continue;
      writers.set(at, position(w[i + 1]));
      if (!exact(w[i + 2])) continue;
      const found = numbers(texts[w[i + 3]]);
      if (per > 1) values[at * parts + w[i + 2] % per] = found[0];
      else found.slice(0, parts).forEach((v, c) => { values[at * parts + c] = v; });
    }
    paint();
    svg.textContent = "";
    for (const [index, cls] of marks) {
      if (strong.has(cls)) mark(index, "mt-halo");
      mark(index, cls);
    }
  };
  return {nodes: [box, told], draw};
}
