import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startService } from '../../../scripts/running-service.ts';
import { smallWav } from '../manifests/sign-wav.ts';

/** Has a service that keeps its data in a folder sign a file, and load each file of the console. */
export async function assertSignsAndServes(
  program: readonly [path: string, ...words: string[]],
  home: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<void> {
  const [entry, ...words] = program;
  await using service = await startService({ folder: home, program: entry, words, settings });
  const path = join(home, 'tone.wav');
  writeFileSync(path, smallWav());
  const { status } = await service.runSync('/v2/sync/c2pa/audio', { inputs: [{ type: 'local_file_path', path }] });
  assert.equal(status, 'succeeded');
  assert.equal((await fetch(`${service.base}/v2/health/ready`)).status, 200);
  const page = await (await fetch(service.base, { headers: { accept: 'text/html' } })).text();
  const [, importMap = ''] = /<script type="importmap">([\s\S]*?)<\/script>/.exec(page) ?? [];
  const addresses = Object.values<string>(JSON.parse(importMap).imports);
  for (const address of [...addresses, 'console/vendor/hls.js', 'console/vendor/c2pa_bg.wasm']) {
    const reply = await fetch(new URL(address, `${service.base}/`));
    assert.equal(reply.status, 200, address);
    await reply.arrayBuffer();
  }
}
