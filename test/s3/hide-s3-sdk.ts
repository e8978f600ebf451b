// Loaded before a program (`node --import`), this makes the AWS SDK a package that is not installed.
import { registerHooks } from 'node:module';

registerHooks({
  resolve(specifier, context, nextResolve) {
    return nextResolve(specifier.startsWith('@aws-sdk/') ? `${specifier}-not-installed` : specifier, context);
  },
});
