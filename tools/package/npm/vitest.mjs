// vitest: globalSetup: ["tally-keyspaces/vitest"]. Tests read inject("keyspaces"), or the variables of exportAddresses.
import { exportAddresses, startServer } from "./index.js";

export async function setup(project) {
  const server = await startServer();
  exportAddresses(server);
  const { host, port, address, admin, api } = server;
  project.provide("keyspaces", { host, port, address, admin, api });
  return async () => {
    await server.stop();
  };
}
