// A notebook gives all its code cells one MIME type. This gives a cell Metal's type while its first line is %%metal, and
// restores the notebook's type when it no longer is.
import { MIME } from './msl';

export const METAL = /^\s*%%metal(?!\S)/;
const PYTHON = new Set(['text/x-ipython', 'text/x-python']);
const followed = new WeakSet();

export function followFirstLine(model) {
  if (followed.has(model)) {
    return; // the notebook has a second view
  }
  followed.add(model);
  let usual = model.mimeType;
  const update = () => {
    if (model.mimeType !== MIME) {
      usual = model.mimeType; // the notebook's type, which the kernel determines
    }
    const metal = PYTHON.has(usual) && METAL.test(model.sharedModel.getSource());
    const wanted = metal ? MIME : usual;
    if (model.mimeType !== wanted) {
      model.mimeType = wanted;
    }
  };
  model.mimeTypeChanged.connect(update);
  model.sharedModel.changed.connect(update);
  update();
}
