"use strict";
// The programs of the package. run(name) runs one in the place of this process: signals and the exit status are the program's.
const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const { join } = require("node:path");

function path(name) {
  return join(__dirname, "tree", "bin", name);
}

function run(name) {
  const child = spawn(path(name), process.argv.slice(2), { stdio: "inherit" });
  // Ctrl-C at a terminal reaches the child by itself; this process only waits for it.
  process.on("SIGINT", () => {});
  for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => {
    console.error(`tally-keyspaces: ${error.message}`);
    process.exitCode = 1;
  });
  child.on("exit", (status, signal) => process.exit(signal ? 128 + constants.signals[signal] : status));
}

module.exports = { path, run };
