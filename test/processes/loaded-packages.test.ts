import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';

// Modules are most of the processor time of a start: a process imports large packages only where it runs them.

const PROCESSES = [
  { of: 'the service', module: '#service.ts', without: ['kysely', '@contentauth/c2pa-node', 'fast-xml-parser'] },
  { of: 'a command', module: '#local-run.ts', without: ['kysely', '@contentauth/c2pa-node', 'fast-xml-parser'] },
  { of: 'a worker', module: '#worker.ts', without: ['kysely', 'smol-toml', 'fast-xml-parser', 'undici'] },
  { of: 'the thread of the store', module: '#jobs/store/store-methods.ts', without: ['zod'] },
];

for (const { of, module, without } of PROCESSES) {
  test(`${of} starts without ${without.join(', ')}`, () => {
    const loaded = packagesLoadedBy(module);
    assert.deepEqual(
      without.filter((name) => loaded.includes(name)),
      [],
    );
  });
}

/** Returns the packages that a module of `src` and its imports are from. */
function packagesLoadedBy(module: string): readonly string[] {
  const program = `
    import { registerHooks } from 'node:module';
    const packages = new Set();
    registerHooks({
      load(url, context, next) {
        packages.add(/.*node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url)?.[1]);
        return next(url, context);
      },
    });
    await import(process.argv[1]);
    console.log(JSON.stringify([...packages]));
    process.exit();`;
  const url = import.meta.resolve(module);
  return JSON.parse(execFileSync(process.execPath, ['--input-type=module', '-e', program, url], { encoding: 'utf8' }));
}
