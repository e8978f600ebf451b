import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { readPublication } from '#publications/read-publication.ts';
import { verifyParts } from '#publications/verification/part-findings.ts';
import { readStoredBinding } from '#publications/verification/stored-binding.ts';
import { filesAt, folderOf } from '../support/publications/make-folder.ts';
import { makeFfmpegDash, makeFilm } from '../support/publications/make-publication.ts';
import { signAsOthers } from '../support/publications/sign-as-others.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const { signal } = new AbortController();

test('manifests of one label and other content are not taken for copies of each other', async () => {
  const home = temporaryFolder();
  const files = Object.entries(filesAt(makeFfmpegDash(makeFilm(home), join(home, 'dash')))).map(
    ([path, bytes]) => [path, Buffer.from(bytes)] as const,
  );
  const patterns = { playlist: '*.mpd', init: '*init*', frag: '*chunk*' };
  const { renditions } = await readPublication(folderOf(Object.fromEntries(files)), patterns, signal);
  const bindingOf = (store: Buffer) => {
    const binding = readStoredBinding(store);
    return 'problem' in binding ? assert.fail(binding.problem) : binding;
  };
  const signed = async (levels: number): Promise<Buffer> => {
    const own = await signAsOthers(Object.fromEntries(files), renditions, { levels });
    const { manifests } = await verifyParts(folderOf(own), renditions, signal);
    return manifests[0]?.store ?? assert.fail('it has a manifest');
  };
  const [first, second] = [await signed(0), await signed(1)];
  const label = bindingOf(first).manifest;
  const relabelled = Buffer.from(second.toString('latin1').replaceAll(bindingOf(second).manifest, label), 'latin1');
  assert.equal(bindingOf(relabelled).manifest, label);
  assert.notEqual(bindingOf(relabelled).id, bindingOf(first).id);
  assert.equal(bindingOf(Buffer.from(first)).id, bindingOf(first).id);
});
