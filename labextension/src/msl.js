// Metal Shading Language for CodeMirror: its C++ mode with Metal's words (words.json, written by words.py).
import { LanguageSupport, StreamLanguage } from '@codemirror/language';
import { cpp } from '@codemirror/legacy-modes/mode/clike';

import words from './words.json';

export const MIME = 'text/x-metal';

const keywords = new Set(words.keywords);
const types = new Set(words.types);
const attributes = new Set(words.attributes);

const parser = {
  ...cpp,
  name: 'metal',

  startState: unit => ({ ...cpp.startState(unit), begun: false, attribute: false }),

  token(stream, state) {
    if (!state.begun) {
      state.begun = true;
      if (stream.match(/^\s*%%metal(?!\S).*/)) {
        return 'meta'; // the magic's line, which is not part of the Metal source
      }
    }
    const style = cpp.token(stream, state);
    const word = stream.current();
    if (word === '[' && stream.peek() === '[') {
      state.attribute = true;
    } else if (word === ']') {
      state.attribute = false;
    }
    return restyled(style, word.split('::').pop(), stream, state);
  }
};

function restyled(style, word, stream, state) {
  if (word === '.') {
    return 'derefOperator'; // without this token JupyterLab would complete a member with every word of the cell
  } else if (style === 'number') {
    if (/[ep]$/i.test(word)) {
      stream.match(/^[-+]\d\w*/); // 1e-5, 0x1p-3f: the C++ mode stops at the sign
    }
  } else if (style === 'type') {
    return word === '*' ? 'operator' : 'builtin'; // JupyterLab's themes have no color for `type`
  } else if (state.attribute && attributes.has(word)) {
    return 'attribute';
  } else if (style === 'variable' || style === 'def') {
    return keywords.has(word) ? 'keyword' : types.has(word) ? 'builtin' : style;
  }
  return style;
}

export const msl = () => new LanguageSupport(StreamLanguage.define(parser));
