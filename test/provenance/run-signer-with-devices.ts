// A signer process whose devices are files: see file-device.ts.
import { registerHooks } from 'node:module';

const DEVICE = new URL('./file-device.ts', import.meta.url).href;

registerHooks({
  resolve: (specifier, context, next) => next(specifier.endsWith('/open-signer.ts') ? DEVICE : specifier, context),
});

await import('#provenance/identity/run-signer.ts');
