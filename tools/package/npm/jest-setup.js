"use strict";
// jest: globalSetup: "tally-keyspaces/jest-setup". Tests read the variables of exportAddresses.
const { exportAddresses, startServer } = require("./index.js");

module.exports = async function setup() {
  globalThis.tallyKeyspaces = await startServer();
  exportAddresses(globalThis.tallyKeyspaces);
};
