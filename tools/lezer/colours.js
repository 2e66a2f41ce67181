// Colours in a page without an editor: reports, and the site of the documents. The classes are those
// of Pygments, which themes of sites have colours for.

import { highlightTree, tagHighlighter, tags as t } from "@lezer/highlight"
import { parser } from "./cel.js"

export const CLASSES = tagHighlighter([
  { tag: t.keyword, class: "k" },
  { tag: t.operatorKeyword, class: "ow" },
  { tag: t.bool, class: "kc" },
  { tag: t.unit, class: "kc" },
  { tag: t.typeName, class: "kt" },
  { tag: t.propertyName, class: "na" },
  { tag: t.function(t.variableName), class: "nf" },
  { tag: t.string, class: "s1" },
  { tag: t.number, class: "mi" },
  { tag: t.comment, class: "c1" },
  { tag: t.operator, class: "o" },
])

// Give the text of an element its colours. Its text stays the same, for those who copy it.
export function colour(element) {
  const text = element.textContent
  const parts = []
  let end = 0
  highlightTree(parser.parse(text), CLASSES, (from, to, classes) => {
    const span = document.createElement("span")
    span.className = classes
    span.textContent = text.slice(from, to)
    parts.push(text.slice(end, from), span)
    end = to
  })
  element.replaceChildren(...parts, text.slice(end))
}
