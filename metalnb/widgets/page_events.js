// Handles events on a widget: clicks on the cells of a map, keys on sliders, dragging and wheel on a picture. They are
// sent to Python; the page itself copies, saves and magnifies.
const KEYS = { ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowLeft: [-1, 0], ArrowDown: [0, -1] };
const ZOOM = 1.25; // factor per key press, about that of a wheel's notch
const FLASH_MS = 1200; // how long a button shows its result
const FRAME_TIMEOUT_MS = 2000; // how long the page waits before it asks for a frame
const CELL = '[data-metalnb-at]';

const pictureOf = event => event.target.closest?.('.metalnb-picture');
const cellNumber = event => event.target.closest?.(CELL)?.dataset.metalnbAt;
const clickCell = (model, cell) => model.send({ event: 'click', index: Number(cell.dataset.metalnbAt) });

function flash(button, text) {
  const label = button.dataset.label ?? (button.dataset.label = button.textContent);
  button.textContent = text;
  setTimeout(() => { button.textContent = label; }, FLASH_MS);
}

async function copy(button, text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // the page has no https, or may not use the clipboard
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
  const transform = { x: 0, y: 0, scale: 1, ...model.get('transform') };
  const draw = image => {
    const { width, height } = image.parentElement.getBoundingClientRect();
    transform.scale = Math.min(64, Math.max(1, transform.scale));
    transform.x = Math.min(0, Math.max(width - image.offsetWidth * transform.scale, transform.x));
    transform.y = Math.min(0, Math.max(height - image.offsetHeight * transform.scale, transform.y));
    image.style.transformOrigin = '0 0';
    image.style.transform = `translate(${transform.x}px, ${transform.y}px) scale(${transform.scale})`;
    image.style.imageRendering = transform.scale > 2 ? 'pixelated' : '';
    model.set('transform', { ...transform }); // for another view of this widget
  };
  return {
    draw,
    pan: (image, dx, dy) => { transform.x += dx; transform.y += dy; draw(image); },
    zoom: (image, x, y, by) => {
      const oldScale = transform.scale;
      transform.scale = Math.min(64, Math.max(1, oldScale * by));
      transform.x = x - (x - transform.x) * transform.scale / oldScale;
      transform.y = y - (y - transform.y) * transform.scale / oldScale;
      draw(image);
    },
    reset: image => { Object.assign(transform, { x: 0, y: 0, scale: 1 }); draw(image); }
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

// Reports each frame shown. Python waits for this before it makes another frame; if one is lost, the page asks again.
function reportFrames(model) {
  let last = 0;
  const report = index => {
    last = performance.now();
    model.send({ event: 'shown', index });
  };
  const onFrame = () => requestAnimationFrame(() => report(model.get('frame')));
  const timer = setInterval(() => {
    const visible = document.visibilityState === 'visible';
    if (model.get('playing') && visible && performance.now() - last > FRAME_TIMEOUT_MS) report(null);
  }, FRAME_TIMEOUT_MS);
  model.on('change:frame', onFrame);
  report(null);
  return () => { clearInterval(timer); model.off('change:frame', onFrame); };
}

// Labels the parts for screen readers, and makes pictures focusable, even those added later.
function labelParts(model, root) {
  const describe = () => {
    for (const image of root.querySelectorAll('.metalnb-picture')) image.alt = model.get('alt');
    for (const button of root.querySelectorAll('.metalnb-copy')) button.title = model.get('call');
  };
  const label = () => {
    for (const handle of root.querySelectorAll('.noUi-handle:not([aria-label])')) {
      const name = handle.closest('.widget-slider')?.querySelector('.widget-label');
      if (name) handle.setAttribute('aria-label', name.textContent);
    }
    for (const button of root.querySelectorAll('.widget-play button:not([aria-label])')) {
      const has = icon => button.querySelector(`.fa-${icon}`);
      button.ariaLabel = has('stop') ? 'stop' : has('play') || has('pause') ? 'play or pause' : 'repeat';
    }
    for (const image of root.querySelectorAll('.metalnb-picture:not([tabindex])')) {
      image.tabIndex = 0;
      image.draggable = false;
    }
    describe();
  };
  label();
  const observer = new MutationObserver(label);
  observer.observe(root, { childList: true, subtree: true });
  model.on('change:alt', describe);
  model.on('change:call', describe);
  return () => {
    observer.disconnect();
    model.off('change:alt', describe);
    model.off('change:call', describe);
  };
}

// Reports whether the pointer or the keyboard is on the widget; a drag that leaves the widget counts.
function trackPresence(model, root, listen) {
  let isOn = false;
  let isDragging = false;
  const report = inside => {
    if (inside !== isOn) model.send({ event: inside ? 'on' : 'off' });
    isOn = inside;
  };
  const hasFocus = () => root.contains(document.activeElement);
  listen(root, 'pointerenter', () => report(true));
  listen(root, 'focusin', () => report(true));
  listen(root, 'pointerleave', () => report(isDragging || hasFocus()));
  listen(root, 'focusout', event => report(root.contains(event.relatedTarget) || root.matches(':hover')));
  return {
    startDrag: () => { isDragging = true; },
    endDrag: () => { isDragging = false; report(root.matches(':hover') || hasFocus()); },
    leave: () => report(false)
  };
}

// Handles the buttons that copy, save and record.
function handleButtons(model, root, listen) {
  let recorder = null; // the button that waits for a recording
  listen(root, 'click', event => {
    const button = event.target.closest('.metalnb-copy, [data-metalnb-save], [data-metalnb-record]');
    if (button?.matches('.metalnb-copy')) copy(button, model.get('call'));
    else if (button?.dataset.metalnbSave) save(root, button);
    else if (button?.dataset.metalnbRecord && !recorder) {
      recorder = button;
      button.dataset.label ??= button.textContent;
      button.textContent = 'recording …';
      model.send({ event: 'record' });
    }
  });
  const onMessage = (content, buffers) => { // only in the view whose button was pressed
    if (!recorder) return;
    if (content.save) saveBytes(content.save, buffers[0], recorder);
    else if (content.failed) flash(recorder, 'failed');
    else return;
    recorder = null;
  };
  model.on('msg:custom', onMessage);
  return () => model.off('msg:custom', onMessage);
}

// Handles clicks on the cells of a map, and shows a cell's description in the line below the map.
function handleCells(model, root, listen) {
  // A map is redrawn while it fills, so the press and the release of a click may have different targets.
  let pressedCell;
  listen(root, 'pointerdown', event => { pressedCell = event.button ? undefined : cellNumber(event); });
  listen(root, 'pointerup', event => {
    if (pressedCell !== undefined && pressedCell === cellNumber(event)) clickCell(model, event.target.closest(CELL));
  });
  listen(root, 'click', event => {
    const cell = event.target.closest(CELL);
    if (cell && event.detail === 0) clickCell(model, cell); // a screen reader made the click
  });
  const showTitle = event => {
    const cell = event.target.closest?.('td[title]');
    const line = cell?.closest('.metalnb')?.querySelector('.metalnb-description');
    if (line) line.textContent = cell.title;
  };
  listen(root, 'pointerover', showTitle);
  listen(root, 'focusin', showTitle);
}

// Dragging draws into a picture or moves it, and the wheel magnifies it.
function handleDrag(model, root, listen, view, presence) {
  const stylus = pen(model);
  let drawnImage = null;
  let last = null; // the pointer's latest position in a drag
  listen(root, 'pointerdown', event => {
    const image = pictureOf(event);
    if (!image || event.button) return;
    last = [event.clientX, event.clientY];
    presence.startDrag();
    image.setPointerCapture(event.pointerId);
    image.focus({ preventScroll: true });
    event.preventDefault();
    if (model.get('draws') && !event.shiftKey) stylus.press(drawnImage = image, event);
  });
  listen(root, 'pointermove', event => {
    if (!last) return;
    if (drawnImage) {
      for (const part of event.getCoalescedEvents?.() ?? [event]) stylus.press(drawnImage, part);
      return;
    }
    view.pan(pictureOf(event), event.clientX - last[0], event.clientY - last[1]);
    last = [event.clientX, event.clientY];
  });
  for (const end of ['pointerup', 'pointercancel']) {
    listen(root, end, event => {
      if (drawnImage) stylus.lift(event);
      last = drawnImage = null;
      presence.endDrag();
    });
  }
  listen(root, 'wheel', event => {
    const image = pictureOf(event);
    if (!image || !root.contains(document.activeElement)) return; // the page is being scrolled past the picture
    event.preventDefault();
    const box = image.parentElement.getBoundingClientRect();
    view.zoom(image, event.clientX - box.x, event.clientY - box.y, Math.exp(-event.deltaY / 500));
  }, { passive: false });
  listen(root, 'dblclick', event => { if (pictureOf(event)) view.reset(pictureOf(event)); });
}

// Handles keys on sliders, on the cells of a map, and on a picture.
function handleKeys(model, root, listen, view) {
  const onPicture = (event, image) => {
    const direction = KEYS[event.key];
    if (direction) {
      const step = image.getBoundingClientRect().height * (event.shiftKey ? 0.01 : 0.1);
      view.pan(image, -step * direction[0], step * direction[1]);
    } else if (event.key.length === 1 && model.get('listens').includes(event.key)) {
      model.send({ event: 'press', key: event.key });
    } else if (event.key === '0') {
      view.reset(image);
    } else if (event.key === '+' || event.key === '-') {
      const { width, height } = image.parentElement.getBoundingClientRect();
      view.zoom(image, width / 2, height / 2, event.key === '+' ? ZOOM : 1 / ZOOM);
    } else {
      return false;
    }
    return true;
  };
  const handle = event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return false; // a shortcut of the browser or the notebook
    const direction = KEYS[event.key];
    const slider = event.target.closest('.noUi-handle')?.closest('.metalnb-knob');
    const image = pictureOf(event);
    const cell = event.target.closest(CELL);
    if (slider && direction) {
      const index = [...root.querySelectorAll('.metalnb-knob')].indexOf(slider);
      model.send({ event: 'key', index, by: direction[0] + direction[1], fine: event.shiftKey });
      return true;
    }
    if (cell && !event.shiftKey && (event.key === 'Enter' || event.key === ' ')) {
      clickCell(model, cell);
      return true;
    }
    return image ? onPicture(event, image) : false;
  };
  listen(root, 'keydown', event => {
    if (!handle(event)) return;
    event.preventDefault();
    event.stopImmediatePropagation(); // keep the slider and the notebook from handling the key
  }, { capture: true });
}

function attach(model, root, listen) {
  const view = model.get('window') ? mover(model) : magnifier(model);
  const presence = trackPresence(model, root, listen);
  handleCells(model, root, listen);
  handleDrag(model, root, listen, view, presence);
  handleKeys(model, root, listen, view);
  const endings = [labelParts(model, root), handleButtons(model, root, listen), presence.leave];
  if (model.get('animated')) endings.push(reportFrames(model));
  return () => endings.forEach(end => end());
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
