"use strict";
// startServer() runs a tallyd on free ports, which ends with this process.
const { spawn } = require("node:child_process");
const { createServer } = require("node:net");
const { createInterface } = require("node:readline");
const program = require("./program.js");

// The standard input of this script is a pipe of this process. The pipe ends when the process ends, even by SIGKILL; then the script
// stops the server.
const GUARD = 'trap "" INT HUP TERM; read -r _; kill "$1"';
const LOG_LINES = 50;
const START_ATTEMPTS = 5; // another process can take a free port before tallyd listens on it

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

async function startServer(options = {}) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(options);
    } catch (error) {
      if (!/in use/.test(error.message) || attempt === START_ATTEMPTS) throw error;
    }
  }
}

async function start({ mode, flags = [], dataDir = ":memory:", program: binary = program.path("tallyd"), timeout = 60000 }) {
  const args = ["--data-dir", dataDir, "--listen", "127.0.0.1", "--port", "0", "--admin-port", String(await freePort()),
    "--api-port", String(await freePort()), ...(mode ? ["--mode", mode] : []), ...flags];
  const child = spawn(binary, args, { stdio: ["ignore", "pipe", "pipe"] });
  const log = [];
  createInterface({ input: child.stderr }).on("line", (line) => {
    log.push(line);
    if (log.length > LOG_LINES) log.shift();
  });
  let failure = "";
  child.on("error", (error) => (failure = `${error.message}\n`));
  const closed = new Promise((resolve) => child.on("close", (status, signal) => resolve(signal ?? status)));
  const guard = child.pid && spawn("/bin/sh", ["-c", GUARD, "tally-guard", String(child.pid)],
    { stdio: ["pipe", "ignore", "ignore"], detached: true });
  const late = setTimeout(() => child.kill("SIGKILL"), timeout);
  const ready = await new Promise((resolve) => {
    createInterface({ input: child.stdout }).on("line", (line) => line.startsWith("tallyd ready: ") && resolve(line));
    closed.then(() => resolve(null));
  });
  clearTimeout(late);
  if (!ready) {
    guard?.kill("SIGKILL");
    throw new Error(`tallyd did not start (status ${await closed}). Command: ${[binary, ...args].join(" ")}\n${failure}${log.join("\n")}`);
  }
  // The server does not keep this process alive.
  for (const handle of [child, child.stdout, child.stderr, guard, guard.stdin]) handle.unref();

  const fields = Object.fromEntries([...ready.matchAll(/(\w+)=(\S+)/g)].map((m) => [m[1], m[2]]));
  const address = fields.cql === "off" ? fields.tls : fields.cql;
  const colon = address.lastIndexOf(":");
  return {
    host: address.slice(0, colon),
    port: Number(address.slice(colon + 1)),
    address,
    admin: fields.admin === "off" ? undefined : fields.admin,
    api: fields.api === "off" ? undefined : fields.api,
    pid: child.pid,
    get log() {
      return log.join("\n");
    },
    async stop() {
      guard.kill("SIGKILL");
      child.ref();
      child.kill("SIGTERM");
      const kill = setTimeout(() => child.kill("SIGKILL"), timeout);
      const status = await closed;
      clearTimeout(kill);
      return status;
    },
  };
}

// Variables of the environment from which tests of another process read the server's addresses.
function exportAddresses(server) {
  process.env.KEYSPACES_HOST = server.host;
  process.env.KEYSPACES_PORT = String(server.port);
  if (server.admin) process.env.KEYSPACES_ADMIN = server.admin;
  if (server.api) process.env.KEYSPACES_API = server.api;
}

module.exports = { startServer, exportAddresses };
