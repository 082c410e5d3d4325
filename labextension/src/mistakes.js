// Errors and warnings of a %%metal cell, underlined and in the gutter, 300 ms after the last key. The kernel is
// asked by an inspection request, like Shift-Tab's, which has no effect without metalnb. A busy kernel is not asked.
import { lintGutter, linter } from '@codemirror/lint';
import { Compartment } from '@codemirror/state';

import { METAL } from './cells';

const LEVEL = 2; // FINDINGS in magics/inspection.py
const MISTAKES = 'application/vnd.metalnb.mistakes+json';
const DELAY = 300; // ms

export function mistakes(kernelOf) {
  const gutter = new Compartment(); // Python cells have none
  let shown = false;
  const show = (view, wanted) => {
    if (shown !== wanted) {
      shown = wanted;
      view.dispatch({ effects: gutter.reconfigure(wanted ? lintGutter() : []) });
    }
  };
  const look = async view => {
    const code = view.state.doc.toString();
    const metal = METAL.test(code);
    show(view, metal);
    const kernel = metal ? kernelOf() : null;
    if (!kernel) {
      return [];
    }
    await idle(kernel);
    if (view.state.doc.toString() !== code) {
      return []; // a later request replaces this one
    }
    const reply = await kernel.requestInspect({ code, cursor_pos: 0, detail_level: LEVEL });
    const marks = reply.content.data?.[MISTAKES] ?? [];
    return marks.filter(mark => mark.line <= view.state.doc.lines).map(mark => diagnostic(view.state.doc, mark));
  };
  return [gutter.of([]), linter(look, { delay: DELAY })];
}

function idle(kernel) {
  if (kernel.status === 'idle') {
    return Promise.resolve();
  }
  return new Promise(done => {
    const follow = (_, status) => {
      if (status === 'idle') {
        kernel.statusChanged.disconnect(follow);
        done();
      }
    };
    kernel.statusChanged.connect(follow);
  });
}

function diagnostic(doc, mark) {
  const line = doc.line(mark.line);
  const from = Math.min(line.from + mark.column - 1, line.to);
  const to = Math.min(from + mark.length, line.to);
  const actions = mark.meant
    ? [{ name: mark.meant, apply: (view, from, to) => view.dispatch({ changes: { from, to, insert: mark.meant } }) }]
    : [];
  return { from, to, severity: mark.severity === 'warning' ? 'warning' : 'error', message: mark.message, actions };
}
