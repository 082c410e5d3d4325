// Events on a widget: clicks on the cells of a map, keys on sliders, dragging and wheel on a picture. They are sent to
// Python; copying, saving and magnifying are done by the page itself.
const KEYS = { ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowLeft: [-1, 0], ArrowDown: [0, -1] };
const ZOOM = 1.25; // factor per key press, about that of a wheel's notch
const FLASH = 1200; // milliseconds for which a button shows what it did
const LOST = 2000; // milliseconds without a frame, after which the page asks for one

function flash(button, text) {
  const label = button.dataset.label ?? (button.dataset.label = button.textContent);
  button.textContent = text;
  setTimeout(() => { button.textContent = label; }, FLASH);
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
      const oldScale = place.scale;
      place.scale = Math.min(64, Math.max(1, oldScale * by));
      place.x = x - (x - place.x) * place.scale / oldScale;
      place.y = y - (y - place.y) * place.scale / oldScale;
      draw(image);
    },
    reset: image => { Object.assign(place, { x: 0, y: 0, scale: 1 }); draw(image); }
  };
}

// Asks Python to move the range that the kernel computes; events within one screen frame are sent together.
function mover(model) {
  let message = null;
  const queue = (image, dx, dy, by, x = 0, y = 0) => {
    const height = image.getBoundingClientRect().height;
    if (!message) {
      message = { event: 'move', dx: 0, dy: 0, by: 1, x, y };
      requestAnimationFrame(() => { model.send(message); message = null; });
    }
    message.dx += dx / height;
    message.dy += dy / height;
    message.by *= by;
  };
  return {
    draw: () => {},
    pan: (image, dx, dy) => queue(image, dx, dy, 1),
    zoom: (image, x, y, by) => {
      const { width, height } = image.getBoundingClientRect();
      queue(image, 0, 0, by, (x - width / 2) / height, (y - height / 2) / height);
    },
    reset: () => model.send({ event: 'reset' })
  };
}

// Sends what the pointer draws, once per screen frame.
function pen(model) {
  let message = null;
  const add = (point, rub) => {
    if (message && message.rub !== rub) send();
    if (!message) {
      message = { event: 'draw', points: [], rub };
      requestAnimationFrame(send);
    }
    message.points.push(point);
  };
  const send = () => {
    if (message) model.send(message);
    message = null;
  };
  return {
    press: (image, event) => {
      const { x, y, width, height } = image.getBoundingClientRect();
      add([(event.clientX - x) / width, (event.clientY - y) / height], event.altKey);
    },
    lift: event => add(null, event.altKey)
  };
}

// Reports each frame shown. Python makes no new frame before; a lost frame is requested again.
function watch(model) {
  let last = 0;
  const report = index => {
    last = performance.now();
    model.send({ event: 'shown', index });
  };
  const onFrame = () => requestAnimationFrame(() => report(model.get('frame')));
  const timer = setInterval(() => {
    const visible = document.visibilityState === 'visible';
    if (model.get('playing') && visible && performance.now() - last > LOST) report(null);
  }, LOST);
  model.on('change:frame', onFrame);
  if (model.get('listens')) report(null);
  return () => { clearInterval(timer); model.off('change:frame', onFrame); };
}

function attach(model, root, listen) {
  const view = model.get('window') ? mover(model) : magnifier(model);
  const stylus = pen(model);
  const unwatch = watch(model);
  let drawnImage = null;
  let recorder = null;
  const picture = event => event.target.closest?.('.metalnb-picture');
  let dragStart = null;
  let isOn = false;

  const prepareParts = () => {
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
  prepareParts();
  const observer = new MutationObserver(prepareParts);
  observer.observe(root, { childList: true, subtree: true });
  const describeParts = () => {
    for (const image of root.querySelectorAll('.metalnb-picture')) image.alt = model.get('alt');
    for (const button of root.querySelectorAll('.metalnb-copy')) button.title = model.get('call');
  };
  model.on('change:alt', describeParts);
  model.on('change:call', describeParts);

  const reportPresence = inside => {
    if (inside !== isOn) model.send({ event: inside ? 'on' : 'off' });
    isOn = inside;
  };
  const isInside = () => root.matches(':hover') || root.contains(document.activeElement);
  listen(root, 'pointerenter', () => reportPresence(true));
  listen(root, 'focusin', () => reportPresence(true));
  listen(root, 'pointerleave', () => reportPresence(dragStart !== null || root.contains(document.activeElement)));
  listen(root, 'focusout', event => reportPresence(root.contains(event.relatedTarget) || root.matches(':hover')));

  const click = cell => model.send({ event: 'click', index: Number(cell.dataset.metalnbAt) });
  listen(root, 'click', event => {
    const part = event.target.closest('[data-metalnb-at], .metalnb-copy, [data-metalnb-save], [data-metalnb-record]');
    if (part?.dataset.metalnbAt && event.detail === 0) click(part); // by a screen reader
    else if (part?.matches('.metalnb-copy')) copy(part, model.get('call'));
    else if (part?.dataset.metalnbSave) save(root, part);
    else if (part?.dataset.metalnbRecord && !recorder) {
      recorder = part;
      part.dataset.label ??= part.textContent;
      part.textContent = 'recording …';
      model.send({ event: 'record' });
    }
  });
  const onRecording = (content, buffers) => { // only in the view whose button was pressed
    if (!content.save || !recorder) return;
    saveBytes(content.save, buffers[0], recorder);
    recorder = null;
  };
  model.on('msg:custom', onRecording);
  // A map is redrawn while it fills, so the press and the release of a click may have different targets.
  const cellNumber = event => event.target.closest?.('[data-metalnb-at]')?.dataset.metalnbAt;
  let pressedCell;
  listen(root, 'pointerdown', event => { pressedCell = cellNumber(event); });
  listen(root, 'pointerup', event => {
    const cell = event.target.closest?.('[data-metalnb-at]');
    if (pressedCell !== undefined && pressedCell === cellNumber(event)) click(cell);
  });
  const showTitle = event => { // a cell's description, in the line below the map
    const cell = event.target.closest?.('td[title]');
    const line = cell?.closest('.metalnb')?.querySelector('.metalnb-description');
    if (line) line.textContent = cell.title;
  };
  listen(root, 'pointerover', showTitle);
  listen(root, 'focusin', showTitle);

  listen(root, 'pointerdown', event => {
    const image = picture(event);
    if (!image || event.button) return;
    dragStart = [event.clientX, event.clientY];
    image.setPointerCapture(event.pointerId);
    image.focus({ preventScroll: true });
    event.preventDefault();
    if (model.get('draws') && !event.shiftKey) stylus.press(drawnImage = image, event);
  });
  listen(root, 'pointermove', event => {
    if (!dragStart) return;
    if (drawnImage) {
      for (const part of event.getCoalescedEvents?.() ?? [event]) stylus.press(drawnImage, part);
      return;
    }
    view.pan(picture(event), event.clientX - dragStart[0], event.clientY - dragStart[1]);
    dragStart = [event.clientX, event.clientY];
  });
  for (const end of ['pointerup', 'pointercancel']) {
    listen(root, end, event => {
      if (drawnImage) stylus.lift(event);
      dragStart = drawnImage = null;
      reportPresence(isInside());
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
    const direction = KEYS[event.key];
    const slider = event.target.closest('.noUi-handle')?.closest('.metalnb-knob');
    const image = picture(event);
    const cell = event.target.closest('[data-metalnb-at]');
    if (slider && direction) {
      const index = [...root.querySelectorAll('.metalnb-knob')].indexOf(slider);
      model.send({ event: 'key', index, by: direction[0] + direction[1], fine: event.shiftKey });
    } else if (cell && (event.key === 'Enter' || event.key === ' ')) {
      click(cell);
    } else if (image && direction) {
      const step = image.getBoundingClientRect().height * (event.shiftKey ? 0.01 : 0.1);
      view.pan(image, -step * direction[0], step * direction[1]);
    } else if (image && event.key.length === 1 && model.get('listens').includes(event.key)) {
      model.send({ event: 'press', key: event.key });
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
    model.off('change:alt', describeParts);
    model.off('change:call', describeParts);
    model.off('msg:custom', onRecording);
    unwatch();
    reportPresence(false);
  };
}

export default {
  render({ model, el }) {
    const closing = new AbortController();
    const { signal } = closing;
    const listen = (root, kind, handler, options = {}) => root.addEventListener(kind, handler, { ...options, signal });
    let detach = () => {};
    const attachWhenAdded = () => { // the surrounding box is added to the page later
      const root = el.closest('.metalnb-live');
      if (root) detach = attach(model, root, listen);
      else if (!closing.signal.aborted) requestAnimationFrame(attachWhenAdded);
    };
    attachWhenAdded();
    return () => { detach(); closing.abort(); };
  }
};
