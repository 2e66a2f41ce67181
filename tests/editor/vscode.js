// As much of VS Code as the extension's start asks for: node vscode.js EXTENSION COMMAND FILE. It
// prints the commands that were registered, and what was shown of the file, which is open.

const { readFileSync } = require("fs")
const Module = require("module")

const [extension, command, file] = process.argv.slice(2)

// What nothing here looks at: an object whose members, and whose results, are such objects.
function any() {
  const own = { then: undefined, [Symbol.toPrimitive]: () => 0, [Symbol.iterator]: undefined }
  return new Proxy(function () { return any() }, {
    get: (of, key) => key in own ? own[key] : key === "prototype" ? of[key] : (own[key] = any()),
  })
}

const uri = path => ({ scheme: "file", fsPath: path, path, toString: () => `file://${path}` })
const registered = [], shown = []
const vscode = {
  version: "1.100.0",
  env: { language: "en", appName: "test", uriScheme: "test" },
  CancellationTokenSource: class { token = { onCancellationRequested: any() }; dispose() {} },
  Diagnostic: class { constructor(range, message) { this.message = message } },
  Disposable: class {},
  EventEmitter: class { event = any(); fire() {} dispose() {} },
  Position: class {},
  Range: class {},
  Uri: { parse: text => uri(text.replace("file://", "")), file: uri },
  commands: { registerCommand: name => { registered.push(name); return any() } },
  languages: {
    createDiagnosticCollection: () => filled({ set: (_, found) => shown.push(...found) }),
    match: (selector, one) => [selector].flat().some(of => of.language === one.languageId) ? 10 : 0,
  },
  window: {
    visibleTextEditors: [],
    tabGroups: { all: [], onDidChangeTabs: any(), onDidChangeTabGroups: any() },
    createOutputChannel: () => filled({ error: console.error }),
    showErrorMessage: text => Promise.reject(text),
  },
  workspace: {
    textDocuments: [
      { uri: uri(file), languageId: "celc", version: 1, getText: () => readFileSync(file, "utf-8") },
    ],
    notebookDocuments: [],
    getConfiguration: () => ({ get: key => key === "command" ? JSON.parse(command) : undefined }),
  },
}
const filled = of => new Proxy(of, { get: (own, key) => key in own ? own[key] : (own[key] = any()) })
for (const room of ["languages", "window", "workspace"]) vscode[room] = filled(vscode[room])
vscode.workspace.workspaceFolders = undefined

const load = Module._load
Module._load = (name, ...rest) => name === "vscode" ? filled(vscode) : load(name, ...rest)

async function main() {
  const { activate, deactivate } = require(extension)
  await activate()
  for (let n = 0; !shown.length && n < 600; n++) await new Promise(done => setTimeout(done, 100))
  console.log(JSON.stringify({ registered, shown: shown.map(one => one.message) }))
  await deactivate()
}

main().then(() => process.exit(0), problem => { console.error(problem); process.exit(1) })
