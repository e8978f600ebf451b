// Does what a program without this service would do: the SDK's own `Builder.sign` from file to file, then a sync, then, with
// `--read-back`, the SDK's reader over the output. `node bench/sdk-program.ts CERT KEY MEDIA_TYPE OUT_FOLDER [--read-back]
// [--whole] FILE…` signs one file after the other and prints the milliseconds of all of them together. With `--whole` each
// appears whole or not at all, as the service's outputs do: under a hidden name first, then renamed, with its folder synced.
import { closeSync, fsyncSync, openSync, readFileSync, renameSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Builder, LocalSigner, Reader } from '@contentauth/c2pa-node';

/** The SDK at its fastest: nothing is verified but what is asked for, no thumbnails, nothing is fetched. */
const SETTINGS = {
  verify: { verify_after_sign: false, remote_manifest_fetch: false },
  builder: { thumbnail: { enabled: false } },
};

const [certificate = '', key = '', mediaType = '', outFolder = '', ...rest] = process.argv.slice(2);
const readBack = rest.includes('--read-back');
const whole = rest.includes('--whole');
const files = rest.filter((argument) => !argument.startsWith('--'));
const signer = LocalSigner.newSigner(readFileSync(certificate), readFileSync(key), 'es256');

const startedAt = performance.now();
for (const file of files) {
  const target = join(outFolder, basename(file));
  if (whole) await signWhole(file, target);
  else await sign(file, target);
}
console.log(performance.now() - startedAt);

async function signWhole(source: string, target: string): Promise<void> {
  const hidden = join(outFolder, `.${basename(target)}`);
  await sign(source, hidden);
  renameSync(hidden, target);
  sync(outFolder, 'r');
}

async function sign(source: string, target: string): Promise<void> {
  const definition = {
    title: basename(source),
    claim_generator_info: [{ name: 'bench', version: '1' }],
    assertions: [],
  };
  const builder = Builder.withJson(definition as never, SETTINGS);
  builder.setIntent('edit' as never);
  builder.sign(signer, { path: source, mimeType: mediaType }, { path: target });
  sync(target, 'r+');
  if (!readBack) return;
  const reader = await Reader.fromAsset({ path: target, mimeType: mediaType }, SETTINGS);
  if (reader === null) throw new Error(`the reader finds no manifest in ${target}`);
  const { validation_state: state } = reader.json() as unknown as { validation_state: string };
  if (state !== 'Valid') throw new Error(`the reader says ${state} of ${target}`);
}

function sync(path: string, flags: string): void {
  const file = openSync(path, flags);
  fsyncSync(file);
  closeSync(file);
}
