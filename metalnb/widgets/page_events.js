// Events on a widget: clicks on the cells of a map, keys on sliders, dragging and wheel on a picture. They are sent to
// Python; copying, saving and magnifying are done by the page itself.
const KEYS = { ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowLeft: [-1, 0], ArrowDown: [0, -1] };
const ZOOM = 1.25; // factor per key press, about that of a wheel's notch
const FLASH = 1200; // milliseconds for which a button shows what it did
const LOST = 2000; // milliseconds without a frame, after which the page asks for one

function flash(button, text) {
  const before = button.dataset.label ?? (button.dataset.label = button.textContent);
  button.textContent = text;
  setTimeout(() => { button.textContent = before; }, FLASH);
}

async function copy(button, text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // a page without https, or one that may not use the clipboard
    const area = Object.assign(document.createElement('textarea'), { value: text });
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  flash(button, 'copied');
}

function save(root, button) {
  const image = root.querySelector('.metalnb-picture');
  Object.assign(document.createElement('a'), { href: image.src, download: button.dataset.metalnbSave }).click();
  flash(button, 'saved');
}

function saveBytes(name, bytes, button) {
  const href = URL.createObjectURL(new Blob([bytes]));
  Object.assign(document.createElement('a'), { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
  flash(button, 'saved');
}

// Magnifies a picture that cannot be recomputed for a part of its range.
function magnifier(model) {
  const place = { x: 0, y: 0, scale: 1, ...model.get('place') };
  const draw = image => {
    const { width, height } = image.parentElement.getBoundingClientRect();
    place.scale = Math.min(64, Math.max(1, place.scale));
    place.x = Math.min(0, Math.max(width - image.offsetWidth * place.scale, place.x));
    place.y = Math.min(0, Math.max(height - image.offsetHeight * place.scale, place.y));
    image.style.transformOrigin = '0 0';
    image.style.transform = `translate(${place.x}px, ${place.y}px) scale(${place.scale})`;
    image.style.imageRendering = place.scale > 2 ? 'pixelated' : '';
    model.set('place', { ...place }); // for another view of this widget
  };
  return {
    draw,
    pan: (image, dx, dy) => { place.x += dx; place.y += dy; draw(image); },
    zoom: (image, x, y, by) => {
      const before = place.scale;
      place.scale = Math.min(64, Math.max(1, before * by));
      place.x = x - (x - place.x) * place.scale / before;
      place.y = y - (y - place.y) * place.scale / before;
      draw(image);
    },
    reset: image => { Object.assign(place, { x: 0, y: 0, scale: 1 }); draw(image); }
  };
}

// Asks Python to move the range that the kernel computes; events within one screen frame are sent together.
function mover(model) {
  let told = null;
  const tell = (image, dx, dy, by, x = 0, y = 0) => {
    const height = image.getBoundingClientRect().height;
    if (!told) {
      told = { did: 'move', dx: 0, dy: 0, by: 1, x, y };
      requestAnimationFrame(() => { model.send(told); told = null; });
    }
    told.dx += dx / height;
    told.dy += dy / height;
    told.by *= by;
  };
  return {
    draw: () => {},
    pan: (image, dx, dy) => tell(image, dx, dy, 1),
    zoom: (image, x, y, by) => {
      const { width, height } = image.getBoundingClientRect();
      tell(image, 0, 0, by, (x - width / 2) / height, (y - height / 2) / height);
    },
    reset: () => model.send({ did: 'reset' })
  };
}

// Sends what the pointer draws, once per screen frame.
function pen(model) {
  let told = null;
  const tell = (point, rub) => {
    if (told && told.rub !== rub) send();
    if (!told) {
      told = { did: 'draw', points: [], rub };
      requestAnimationFrame(send);
    }
    told.points.push(point);
  };
  const send = () => {
    if (told) model.send(told);
    told = null;
  };
  return {
    at: (image, event) => {
      const { x, y, width, height } = image.getBoundingClientRect();
      tell([(event.clientX - x) / width, (event.clientY - y) / height], event.altKey);
    },
    lift: event => tell(null, event.altKey)
  };
}

// Reports each frame shown. Python makes no new frame before; a lost frame is requested again.
function watch(model) {
  let last = 0;
  const tell = at => {
    last = performance.now();
    model.send({ did: 'shown', at });
  };
  const shown = () => requestAnimationFrame(() => tell(model.get('frame')));
  const waiting = setInterval(() => {
    const visible = document.visibilityState === 'visible';
    if (model.get('playing') && visible && performance.now() - last > LOST) tell(null);
  }, LOST);
  model.on('change:frame', shown);
  if (model.get('listens')) tell(null);
  return () => { clearInterval(waiting); model.off('change:frame', shown); };
}

function attach(model, root, listen) {
  const view = model.get('window') ? mover(model) : magnifier(model);
  const stylus = pen(model);
  const unwatch = watch(model);
  let drawing = null;
  let recorder = null;
  const picture = event => event.target.closest?.('.metalnb-picture');
  let held = null;
  let on = false;

  const dress = () => {
    for (const handle of root.querySelectorAll('.noUi-handle:not([aria-label])')) {
      const label = handle.closest('.widget-slider')?.querySelector('.widget-label');
      if (label) handle.setAttribute('aria-label', label.textContent);
    }
    for (const button of root.querySelectorAll('.widget-play button:not([aria-label])')) {
      const has = icon => button.querySelector(`.fa-${icon}`);
      button.ariaLabel = has('stop') ? 'stop' : has('play') || has('pause') ? 'play or pause' : 'repeat';
    }
    for (const image of root.querySelectorAll('.metalnb-picture:not([tabindex])')) {
      image.tabIndex = 0;
      image.draggable = false;
      image.alt = model.get('alt');
    }
    for (const button of root.querySelectorAll('.metalnb-copy')) button.title = model.get('call');
  };
  dress();
  const observer = new MutationObserver(dress);
  observer.observe(root, { childList: true, subtree: true });
  const described = () => {
    for (const image of root.querySelectorAll('.metalnb-picture')) image.alt = model.get('alt');
    for (const button of root.querySelectorAll('.metalnb-copy')) button.title = model.get('call');
  };
  model.on('change:alt', described);
  model.on('change:call', described);

  const here = inside => {
    if (inside !== on) model.send({ did: inside ? 'on' : 'off' });
    on = inside;
  };
  const within = () => root.matches(':hover') || root.contains(document.activeElement);
  listen(root, 'pointerenter', () => here(true));
  listen(root, 'focusin', () => here(true));
  listen(root, 'pointerleave', () => here(held !== null || root.contains(document.activeElement)));
  listen(root, 'focusout', event => here(root.contains(event.relatedTarget) || root.matches(':hover')));

  const click = cell => model.send({ did: 'click', at: Number(cell.dataset.metalnbAt) });
  listen(root, 'click', event => {
    const part = event.target.closest('[data-metalnb-at], .metalnb-copy, [data-metalnb-save], [data-metalnb-record]');
    if (part?.dataset.metalnbAt && event.detail === 0) click(part); // by a screen reader
    else if (part?.matches('.metalnb-copy')) copy(part, model.get('call'));
    else if (part?.dataset.metalnbSave) save(root, part);
    else if (part?.dataset.metalnbRecord && !recorder) {
      recorder = part;
      part.dataset.label ??= part.textContent;
      part.textContent = 'recording …';
      model.send({ did: 'record' });
    }
  });
  const recorded = (content, buffers) => { // only in the view whose button was pressed
    if (!content.save || !recorder) return;
    saveBytes(content.save, buffers[0], recorder);
    recorder = null;
  };
  model.on('msg:custom', recorded);
  // A map is redrawn while it fills, so the press and the release of a click may have different targets.
  const number = event => event.target.closest?.('[data-metalnb-at]')?.dataset.metalnbAt;
  let pressed;
  listen(root, 'pointerdown', event => { pressed = number(event); });
  listen(root, 'pointerup', event => {
    if (pressed !== undefined && pressed === number(event)) click(event.target.closest('[data-metalnb-at]'));
  });
  const tell = event => { // a cell's description, in the line below the map
    const cell = event.target.closest?.('td[title]');
    const line = cell?.closest('.metalnb')?.querySelector('.metalnb-told');
    if (line) line.textContent = cell.title;
  };
  listen(root, 'pointerover', tell);
  listen(root, 'focusin', tell);

  listen(root, 'pointerdown', event => {
    const image = picture(event);
    if (!image || event.button) return;
    held = [event.clientX, event.clientY];
    image.setPointerCapture(event.pointerId);
    image.focus({ preventScroll: true });
    event.preventDefault();
    if (model.get('draws') && !event.shiftKey) stylus.at(drawing = image, event);
  });
  listen(root, 'pointermove', event => {
    if (!held) return;
    if (drawing) {
      for (const part of event.getCoalescedEvents?.() ?? [event]) stylus.at(drawing, part);
      return;
    }
    view.pan(picture(event), event.clientX - held[0], event.clientY - held[1]);
    held = [event.clientX, event.clientY];
  });
  for (const end of ['pointerup', 'pointercancel']) {
    listen(root, end, event => {
      if (drawing) stylus.lift(event);
      held = drawing = null;
      here(within());
    });
  }
  listen(root, 'wheel', event => {
    const image = picture(event);
    if (!image || !root.contains(document.activeElement)) return; // the page is being scrolled past the picture
    event.preventDefault();
    const box = image.parentElement.getBoundingClientRect();
    view.zoom(image, event.clientX - box.x, event.clientY - box.y, Math.exp(-event.deltaY / 500));
  }, { passive: false });
  listen(root, 'dblclick', event => { if (picture(event)) view.reset(picture(event)); });

  listen(root, 'keydown', event => {
    const way = KEYS[event.key];
    const slider = event.target.closest('.noUi-handle')?.closest('.metalnb-knob');
    const image = picture(event);
    const cell = event.target.closest('[data-metalnb-at]');
    if (slider && way) {
      const at = [...root.querySelectorAll('.metalnb-knob')].indexOf(slider);
      model.send({ did: 'key', at, by: way[0] + way[1], fine: event.shiftKey });
    } else if (cell && (event.key === 'Enter' || event.key === ' ')) {
      click(cell);
    } else if (image && way) {
      const step = image.getBoundingClientRect().height * (event.shiftKey ? 0.01 : 0.1);
      view.pan(image, -step * way[0], step * way[1]);
    } else if (image && event.key.length === 1 && model.get('listens').includes(event.key)) {
      model.send({ did: 'press', key: event.key });
    } else if (image && '+-0'.includes(event.key)) {
      const { width, height } = image.parentElement.getBoundingClientRect();
      if (event.key === '0') view.reset(image);
      else view.zoom(image, width / 2, height / 2, event.key === '+' ? ZOOM : 1 / ZOOM);
    } else {
      return;
    }
    event.preventDefault();
    event.stopImmediatePropagation(); // keep the slider and the notebook's shortcuts from handling it too
  }, { capture: true });

  return () => {
    observer.disconnect();
    model.off('change:alt', described);
    model.off('change:call', described);
    model.off('msg:custom', recorded);
    unwatch();
    here(false);
  };
}

export default {
  render({ model, el }) {
    const ended = new AbortController();
    const listen = (root, kind, act, options = {}) => root.addEventListener(kind, act, { ...options, signal: ended.signal });
    let end = () => {};
    const wait = () => { // the surrounding box is added to the page later
      const root = el.closest('.metalnb-live');
      if (root) end = attach(model, root, listen);
      else if (!ended.signal.aborted) requestAnimationFrame(wait);
    };
    wait();
    return () => { end(); ended.abort(); };
  }
};
