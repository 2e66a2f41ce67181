// Words and what has no spelling, which the tokenizer of Lezer cannot tell by their letters. It
// follows `celc.parse.tokens.terminal_of`: a word is a keyword where the grammar has a place for it.
// Where a name can stand as well, celc looks at the next words; here both are tried, and the reading
// that goes on is kept.

import { ExternalTokenizer } from "@lezer/lr"
import * as terms from "./cel.terms.js"
import { KEYWORDS, RESERVED, UNITS } from "./cel.words.js"

const BACKQUOTE = 96

// What Python calls an identifier.
const WORD = /^[\p{XID_Start}_]\p{XID_Continue}*/u

function wordAt(input) {
  let text = ""
  for (let code; (code = input.peek(text.length)) > 127 || inWord(code); ) text += String.fromCharCode(code)
  return WORD.exec(text)?.[0] ?? ""
}

const inWord = code =>
  code === 95 || (code >= 48 && code <= 57) || (code >= 65 && code <= 90) || (code >= 97 && code <= 122)

const both = { contextual: true, extend: true }

export const keywords = new ExternalTokenizer((input, stack) => {
  const word = wordAt(input).toUpperCase()
  const term = KEYWORDS.get(word)
  if (term !== undefined && stack.canShift(terms[term])) input.acceptToken(terms[term], word.length)
}, both)

export const names = new ExternalTokenizer((input, stack) => {
  const { ATTRIBUTE, EVENTS, NAME, UNIT } = terms
  const term = stack.canShift(ATTRIBUTE) ? ATTRIBUTE : NAME
  if (input.next === BACKQUOTE) {
    let length = 1
    for (;; length++) {
      if (input.peek(length) < 0) return
      if (input.peek(length) === BACKQUOTE && input.peek(++length) !== BACKQUOTE) break
    }
    input.acceptToken(term, length)
    return
  }
  const spelled = wordAt(input), word = spelled.toUpperCase()
  if (!word) return
  if (UNITS.has(word) && stack.canShift(UNIT)) return input.acceptToken(UNIT, spelled.length)
  if (!RESERVED.has(word)) return input.acceptToken(term, spelled.length)
  // A reserved word is an attribute where it cannot be the keyword; NOT before a sign is one as well.
  const isFree = term === ATTRIBUTE && !stack.canShift(EVENTS)
  const isKeyword = word !== "NOT" && stack.canShift(terms[KEYWORDS.get(word)])
  if (isFree && !isKeyword) input.acceptToken(term, spelled.length)
}, { contextual: true })

export const unspelled = new ExternalTokenizer((input, stack) => {
  for (const term of [terms.HOLDS, terms.BEGIN]) {
    if (stack.canShift(term)) return input.acceptToken(term, 0)
  }
}, both)
