// The editor of the playground: CodeMirror with the grammar of celc.

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands"
import { LRLanguage, LanguageSupport, bracketMatching, syntaxHighlighting } from "@codemirror/language"
import { lintKeymap, setDiagnostics } from "@codemirror/lint"
import { EditorState } from "@codemirror/state"
import { EditorView, drawSelection, keymap, lineNumbers } from "@codemirror/view"
import { parser } from "./cel.js"
import { CLASSES } from "./colours.js"

const languageData = { commentTokens: { line: "--", block: { open: "/*", close: "*/" } } }
const cel = new LanguageSupport(LRLanguage.define({ name: "cel", parser, languageData }))

// An editor in an element. `changed` is called at each change, `run` at Ctrl+Enter; `nonce` is that
// of the page's policy for styles.
export function open(parent, doc, { nonce, changed, run }) {
  const extensions = [
    lineNumbers(), history(), drawSelection(), bracketMatching(), cel, syntaxHighlighting(CLASSES),
    EditorView.cspNonce.of(nonce),
    EditorView.contentAttributes.of({ "aria-label": "Query" }),
    EditorView.updateListener.of(update => { if (update.docChanged) changed() }),
    keymap.of([{ key: "Mod-Enter", run }, ...defaultKeymap, ...historyKeymap, ...lintKeymap]),
  ]
  const view = new EditorView({ parent, state: EditorState.create({ doc, extensions }) })
  return {
    text: () => view.state.doc.toString(),
    write: (place, insert) => view.dispatch({ changes: { ...place, insert } }),
    show: found => view.dispatch(setDiagnostics(view.state, found)),
  }
}
