// What each token is, in the words of Lezer's themes.

import { styleTags, tags as t } from "@lezer/highlight"

export const highlighting = styleTags({
  Keyword: t.keyword,
  OperatorWord: t.operatorKeyword,
  Constant: t.bool,
  Unit: t.unit,
  Name: t.variableName,
  Attribute: t.propertyName,
  "FunctionName/Name FunctionName/Attribute": t.function(t.variableName),
  "TypeName/Attribute TypeName/Keyword CastName/Attribute": t.typeName,
  Text: t.string,
  Number: t.number,
  Comment: t.comment,
  Operator: t.operator,
  Bracket: t.bracket,
})
