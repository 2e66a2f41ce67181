// Starts the language server, which does all the rest.

const vscode = require("vscode")
const { LanguageClient } = require("vscode-languageclient/node")

let client

exports.activate = () => {
  const [command, ...args] = vscode.workspace.getConfiguration("celc").get("command")
  const documentSelector = [{ language: "celc" }, { language: "sql" }]
  client = new LanguageClient("celc", "celc", { command, args }, { documentSelector })
  return client.start()
}

exports.deactivate = () => client?.stop()
