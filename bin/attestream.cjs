#!/usr/bin/env node
// The command of the published package. It is CommonJS without recent syntax, so that an old Node reads it to the message.
'use strict';

const problem = unsuitable();
if (problem === null) run();
else {
  process.stderr.write(`attestream: ${problem}\n`);
  process.exitCode = 2;
}

/** Returns in one sentence why this Node or this system cannot run the program; null where it can. */
function unsuitable() {
  if (Number(process.versions.node.split('.')[0]) < 24) {
    return `Node.js 24 or newer is needed, and ${process.execPath} is ${process.version}.`;
  }
  // The report would otherwise look up the names of all addresses.
  process.report.excludeNetwork = true;
  const isGlibc = process.report.getReport().header.glibcVersionRuntime !== undefined;
  if (process.platform === 'linux' && process.arch === 'x64' && isGlibc) return null;
  const found = `${process.platform} on ${process.arch}`;
  return `Linux on x64 with glibc is needed, and this is ${found}${isGlibc ? '' : ' without glibc'}.`;
}

function run() {
  if (!process.env.NODE_COMPILE_CACHE) keepCompiledCode();
  void import('../src/cli/main.js');
}

/** Keeps compiled code from start to start, in the user's folder of caches; nowhere where that cannot be written. */
function keepCompiledCode() {
  const { accessSync, constants, mkdirSync } = require('node:fs');
  const { enableCompileCache } = require('node:module');
  const { homedir } = require('node:os');
  const { join } = require('node:path');
  try {
    const folder = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'attestream');
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    accessSync(folder, constants.W_OK);
    enableCompileCache(folder);
    // Threads look for it there.
    process.env.NODE_COMPILE_CACHE = folder;
  } catch {
    process.env.NODE_DISABLE_COMPILE_CACHE = '1';
  }
}
