import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

// Compiled code is kept from start to start: types need not be stripped again, which halves the time to the first
// request and spares every process some 30 MB. Where the folder cannot be written, all works without.
enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/attestream', import.meta.url)));

// Not imported statically: the cache serves only what is loaded after it was enabled.
const { runService } = await import('#service.ts');
await runService();
