// Draws a two-dimensional array as an image, with the elements that the threads' statements access marked on it.
function metalnbImage(make, m, texts) {
  const {shape, per, first, steps, size: [rows, columns, parts], levels} = m.image;
  const bytes = Uint8Array.from(atob(m.image.values), c => c.charCodeAt(0));
  const initial = levels ? bytes : new Float32Array(bytes.buffer);
  const box = make("div", "mt-image"), canvas = make("canvas"), caption = make("div", "mt-caption");
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
  const isSampled = index => steps[0] * steps[1] === 1 || (Math.floor(index / per / shape[1]) - first[0]) % steps[0] === 0 &&
    (Math.floor(index / per) % shape[1] - first[1]) % steps[1] === 0;
  const numbers = text => (text.match(/[-\d.e+]+|inf|nan/g) || []).map(Number);

  let values = initial, writers = new Map();
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
    legend = [partText.join(", "), range].filter(Boolean).join("; ") || "\u00a0";
    caption.textContent = legend;
  };
  const short = v => String(+v.toPrecision(4));
  let legend = "";
  const outlined = new Set(["mt-read", "mt-writes", "mt-wrong"]);
  const mark = (index, cls) => {
    const cell = place(index);
    if (cell < 0) return;
    const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [name, value] of [["x", cell % columns], ["y", Math.floor(cell / columns)], ["width", 1], ["height", 1],
                                 ["class", cls], ["data-index", index]]) rect.setAttribute(name, value);
    svg.append(rect);
  };

  svg.addEventListener("pointermove", event => {
    const area = svg.getBoundingClientRect();
    const column = Math.min(columns - 1, Math.floor((event.clientX - area.x) / area.width * columns));
    const row = Math.min(rows - 1, Math.floor((event.clientY - area.y) / area.height * rows));
    const y = first[0] + row * steps[0], x = first[1] + column * steps[1], cell = row * columns + column;
    const value = [...values.slice(cell * parts, cell * parts + parts)].map(short).join(", ");
    const writer = writers.get(cell);
    caption.textContent = `row ${y}, column ${x}: ${value}${writer === undefined ? "" : `, written by thread ${writer}`}`;
  });
  svg.addEventListener("pointerleave", () => { caption.textContent = legend; });

  // Describes which part of the array is drawn.
  const describeSpan = (what, cell, count, step, all) => [
    count * step < all ? `${what} ${cell} to ${Math.min(all, cell + count * step) - 1}` : "",
    step > 1 ? `one in ${step} ${what}` : "",
  ];
  const partText = [...describeSpan("rows", first[0], rows, steps[0], shape[0]), ...describeSpan("columns", first[1], columns, steps[1], shape[1])]
    .filter(Boolean);

  // Draws the values written before a tick, and marks: pairs of an element and a class, the last on top.
  const draw = (tick, marks, position) => {
    values = initial.slice();
    writers = new Map();
    const w = m.writes;
    for (let i = 0; i < w.length && w[i] < tick; i += 4) {
      const cell = place(w[i + 2]);
      if (cell < 0) continue;
      writers.set(cell, position(w[i + 1]));
      if (!isSampled(w[i + 2])) continue;
      const components = numbers(texts[w[i + 3]]);
      if (per > 1) values[cell * parts + w[i + 2] % per] = components[0];
      else components.slice(0, parts).forEach((v, c) => { values[cell * parts + c] = v; });
    }
    paint();
    svg.textContent = "";
    for (const [index, cls] of marks) {
      if (outlined.has(cls)) mark(index, "mt-halo");
      mark(index, cls);
    }
  };
  return {nodes: [box, caption], draw};
}
