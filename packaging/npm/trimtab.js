#!/usr/bin/env node
// Runs the program of this platform's package with the same arguments, signals and exit code.
"use strict";
const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const name = `@trimtab/${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/trimtab${process.platform === "win32" ? ".exe" : ""}`);
} catch {
  console.error(`trimtab: the package ${name} is not installed. Either this platform is not supported, or npm was told to omit optional dependencies.`);
  process.exit(1);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// The terminal sends Ctrl-C to both; the program decides what it means.
for (const signal of ["SIGINT", "SIGQUIT"]) process.on(signal, () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`trimtab: ${program} cannot be started: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
