"""The contrast of text with its background, measured on a page."""

LEAST_CONTRAST = 4.5  # WCAG 2.2, success criterion 1.4.3: text of this size on its background

# The contrast of each run of text within an element: colors weighted as in WCAG, over everything painted behind it.
CONTRASTS_IN = """(root => {
  const rgba = text => {  // rgb(…), or what color-mix() makes: color(srgb …), from 0 to 1
    const n = text.match(/[\\d.e-]+(?![a-z(])/g).map(Number), most = text.startsWith('color(') ? 255 : 1;
    return [most * n[0], most * n[1], most * n[2], n.length > 3 ? n[3] : 1];
  };
  const over = (top, below) => top.slice(0, 3).map((v, i) => v * top[3] + below[i] * (1 - top[3]));
  const light = color => {
    const [r, g, b] = color.map(v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = element => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.unshift(rgba(getComputedStyle(e).backgroundColor));
    return layers.reduce((below, top) => over(top, below), [255, 255, 255]);
  };
  const found = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (!node.data.trim()) continue;
    const back = behind(node.parentElement);
    const ink = over(rgba(getComputedStyle(node.parentElement).color), back);
    const [a, b] = [light(ink), light(back)].sort((x, y) => y - x);
    found.push([node.data, (a + 0.05) / (b + 0.05)]);
  }
  return found;
})"""

# The contrast of each text in a card with its background, lowest first (WCAG 2, 1.4.3).
CARD_CONTRASTS = """(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
  const over = (color, behind) => {
    canvas.fillStyle = `rgb(${behind})`; canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const backdrop = e =>
    over(getComputedStyle(e).backgroundColor, e.parentElement ? backdrop(e.parentElement) : [255, 255, 255]);
  const light = rgb => rgb.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const found = [];
  for (const e of document.querySelectorAll('.metalnb :is(code, td, th, summary, span, i)')) {
    if (!e.checkVisibility() || !e.textContent.trim()) continue;
    const behind = backdrop(e), text = over(getComputedStyle(e).color, behind);
    const [a, b] = [light(text), light(behind)].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), e.className, e.textContent.slice(0, 40)]);
  }
  return found.sort((x, y) => x[0] - y[0]);
})()"""
