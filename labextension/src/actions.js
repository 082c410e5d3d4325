// The buttons of a kernel's card. Each inserts a cell below the card and runs it. The cell calls the kernel as the
// notebook's latest call did (Python is asked by an inspection request, like Shift-Tab's); without one, as on the card.
import { NotebookActions } from '@jupyterlab/notebook';

const HERE = 'metalnb-here'; // a page with this class shows the buttons
const LEVEL = 3; // LATEST in magics/inspection.py
const CALL = 'application/vnd.metalnb.call';
const PATIENCE = 1000; // ms to wait for a busy kernel
const FLASH = 1200; // ms for which a button shows what it did

export function handleActions(notebooks) {
  document.body.classList.add(HERE);
  document.addEventListener('click', event => {
    const button = event.target.closest?.('.metalnb-acts button');
    const panel = button && notebooks.find(candidate => candidate.content.node.contains(button));
    if (panel) act(panel, button);
  });
}

async function act(panel, button) {
  const { metalnbKernel: name, metalnbCall: shown } = button.parentElement.dataset;
  const call = (await latest(panel.sessionContext.session?.kernel, name)) || shown;
  const cell = button.dataset.metalnbCell;
  if (!cell) {
    await navigator.clipboard.writeText(call);
    flash(button, 'copied');
    return;
  }
  const kernelAndArguments = call.replace(/\(\s*\)$/, '').replace('(', ', ').replace(/\)$/, '');
  insert(panel, button, cell.replace('{call}', call).replace('{given}', kernelAndArguments));
}

async function latest(kernel, name) {
  if (!kernel) return '';
  const answer = kernel.requestInspect({ code: name, cursor_pos: 0, detail_level: LEVEL });
  const late = new Promise(done => setTimeout(done, PATIENCE));
  const reply = await Promise.race([answer, late]).catch(() => null);
  return reply?.content.data?.[CALL] ?? '';
}

function insert(panel, button, source) {
  const notebook = panel.content;
  const index = notebook.widgets.findIndex(cell => cell.node.contains(button)) + 1;
  if (notebook.widgets[index]?.model.sharedModel.getSource() !== source) { // a second click runs the same cell
    notebook.model.sharedModel.insertCell(index, { cell_type: 'code', source, metadata: { trusted: true } });
  }
  notebook.deselectAll();
  notebook.activeCellIndex = index;
  void NotebookActions.run(notebook, panel.sessionContext);
}

function flash(button, text) {
  const before = (button.dataset.label ??= button.getAttribute('aria-label'));
  button.setAttribute('aria-label', text);
  setTimeout(() => button.setAttribute('aria-label', before), FLASH);
}
