// JupyterLab's side of metalnb: %%metal cells, and .metal files, are coloured as Metal Shading Language.
import { IEditorExtensionRegistry, IEditorLanguageRegistry } from '@jupyterlab/codemirror';

import { followFirstLine } from './cells';
import { MIME, msl } from './msl';

export default {
  id: 'metalnb:msl',
  description: 'Colours %%metal cells as Metal Shading Language.',
  autoStart: true,
  requires: [IEditorLanguageRegistry, IEditorExtensionRegistry],
  activate: (app, languages, extensions) => {
    languages.addLanguage({ name: 'Metal', mime: MIME, extensions: ['metal'], support: msl() });
    // It adds nothing to an editor: this is where JupyterLab tells of each one, with its model.
    extensions.addExtension({
      name: 'metalnb:first-line',
      factory: ({ inline, model }) => {
        if (inline) {
          followFirstLine(model);
        }
        return null;
      }
    });
  }
};
