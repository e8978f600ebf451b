import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

/**
 * From so many bytes on the C library gives memory back as soon as it is let go of: an idle service takes 125 MB and not 145
 * (PSS, two runs each). The library reads this when a process begins, so the process begins again.
 */
const MAPPED_FROM_BYTES = String(512 * 1024);
const SETTING = 'MALLOC_MMAP_THRESHOLD_';
if (process.platform === 'linux' && process.env[SETTING] === undefined) {
  const environment = { ...process.env, [SETTING]: MAPPED_FROM_BYTES };
  process.execve?.(process.execPath, [process.execPath, ...process.execArgv, ...process.argv.slice(1)], environment);
}

// Compiled code is kept from start to start, so that types need not be stripped again. Measured: the modules of a worker
// load in 220 ms instead of 560, and 85 MB instead of 115. Where the folder cannot be written, all works without.
enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/attestream', import.meta.url)));

// Not imported statically: the cache serves only what is loaded after it was enabled.
const { runService } = await import('#service.ts');
await runService();
