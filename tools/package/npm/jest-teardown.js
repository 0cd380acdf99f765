"use strict";
// jest: globalTeardown: "tally-keyspaces/jest-teardown", in the process of jest-setup.
module.exports = async function teardown() {
  await globalThis.tallyKeyspaces?.stop();
};
