// A notebook gives all its code cells one type. This gives a cell that begins with %%metal the type of Metal, and takes
// it away again, as the first line is typed.
import { MIME } from './msl';

export const METAL = /^\s*%%metal(?!\S)/;
const PYTHON = new Set(['text/x-ipython', 'text/x-python']);
const followed = new WeakSet();

export function followFirstLine(model) {
  if (followed.has(model)) {
    return; // in another view of the same notebook
  }
  followed.add(model);
  let usual = model.mimeType;
  const update = () => {
    if (model.mimeType !== MIME) {
      usual = model.mimeType; // the notebook's, which comes with the kernel
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
