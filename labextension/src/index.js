// JupyterLab's side of metalnb: %%metal cells, and .metal files, are colored as Metal Shading Language, and mistakes
// in a cell are marked while it is typed; the buttons of a kernel's card insert cells below it.
import { EditorExtensionRegistry, IEditorExtensionRegistry, IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import { INotebookTracker } from '@jupyterlab/notebook';

import { handleActions } from './actions';
import { followFirstLine } from './cells';
import { mistakes } from './mistakes';
import { MIME, msl } from './msl';

export default {
  id: 'metalnb:msl',
  description: 'Colors %%metal cells as Metal Shading Language, marks their mistakes, and acts on their cards.',
  autoStart: true,
  requires: [IEditorLanguageRegistry, IEditorExtensionRegistry],
  optional: [INotebookTracker],
  activate: (app, languages, extensions, notebooks) => {
    languages.addLanguage({ name: 'Metal', mime: MIME, extensions: ['metal'], support: msl() });
    // An empty editor extension: through it JupyterLab reports each new editor, with its model.
    extensions.addExtension({
      name: 'metalnb:first-line',
      factory: ({ inline, model }) => {
        if (inline) {
          followFirstLine(model);
        }
        return null;
      }
    });
    if (!notebooks) {
      return;
    }
    handleActions(notebooks);
    const kernelOf = model => {
      const holds = panel => panel.content.widgets.some(cell => cell.model.sharedModel === model.sharedModel);
      return notebooks.find(holds)?.sessionContext.session?.kernel;
    };
    extensions.addExtension({
      name: 'metalnb:mistakes',
      default: true,
      factory: ({ inline, model }) =>
        inline ? EditorExtensionRegistry.createConditionalExtension(mistakes(() => kernelOf(model))) : null,
      schema: { type: 'boolean', title: 'Mistakes in %%metal cells', description: 'Mark them while you type.' }
    });
  }
};
