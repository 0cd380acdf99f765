#!/usr/bin/env node
"use strict";
require("./program.js").run("tally");
