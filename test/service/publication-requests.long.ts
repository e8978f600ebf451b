import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { JobResultResponse } from '#contract/job.ts';
import { readFragmentStore } from '../../scripts/fragment-report.ts';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { filesAt, writeFiles } from '../support/publications/make-folder.ts';
import { makeFfmpegHls, makeFilm } from '../support/publications/make-publication.ts';
import {
  assertSignedPublication,
  bytesOf,
  type Files,
  renditionsOf,
} from '../support/publications/signed-publication.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
const film = makeFilm(folder);
const publication = makeFfmpegHls(film, join(folder, 'evening'));
const patterns = { playlist: '*.m3u8', init: 'init*', frag: '*.m4s' };
const patternParams = { playlist_pattern: '*.m3u8', init_pattern: 'init*', frag_pattern: '*.m4s' };
const home = join(folder, 'service');

let service: RunningService;
before(async () => {
  service = await startService({
    folder: home,
    settings: { SERVICE__SIGNING__VERIFY_FRAGMENTS: 'all' },
  });
});
after(() => service?.stop());

const folderInput = (path: string) => ({ type: 'local_folder_path', path });
const fileInput = (path: string) => ({ type: 'local_file_path', path });

/** Signs publications, each under an output name of its own where one is given. */
function sign(paths: readonly string[], params: object = {}, name?: string): Promise<JobResultResponse> {
  return service.runSync('/v2/sync/c2pa/fragmented', {
    inputs: paths.map(folderInput),
    params: { ...patternParams, ...params },
    ...(name !== undefined && { output: { type: 'local', name } }),
  });
}

function outputOf({ status, results: [result] }: JobResultResponse): string {
  assert.equal(status, 'succeeded', result?.error);
  return result?.output_path as string;
}

async function firstFragmentStore(files: Files) {
  const [{ init, fragments }] = (await renditionsOf(files, patterns)) as [Awaited<ReturnType<typeof renditionsOf>>[0]];
  const [fragment] = fragments;
  assert.ok(fragment !== undefined);
  const store = await readFragmentStore(bytesOf(files, init), bytesOf(files, fragment));
  const active = store.manifests[store.active_manifest];
  assert.ok(active !== undefined);
  return { store, active };
}

describe('A publication', () => {
  test('that is signed again keeps its chain and loses its old Merkle boxes', async () => {
    const first = outputOf(await sign([publication], {}, 'once'));
    const again = outputOf(await sign([first], {}, 'twice'));
    const [source, output] = [filesAt(first), filesAt(again)];
    await assertSignedPublication(source, patterns, output);
    const earlier = await firstFragmentStore(source);
    const { store, active } = await firstFragmentStore(output);
    assert.deepEqual(
      active.ingredients?.map(({ title, relationship }) => [title, relationship]),
      [['evening', 'parentOf']],
    );
    assert.ok(Object.keys(store.manifests).includes(earlier.store.active_manifest));
    assert.deepEqual(store.validation_status?.filter(({ code }) => code !== 'signingCredential.untrusted') ?? [], []);
  });

  test('without a parent is an edit of its own source', async () => {
    const { active } = await firstFragmentStore(filesAt(outputOf(await sign([publication], {}, 'own'))));
    assert.deepEqual(
      active.ingredients?.map(({ title, relationship }) => [title, relationship]),
      [['evening', 'parentOf']],
    );
    assert.equal(active.title, 'evening');
  });

  test('carries assertions and a reference parent', async () => {
    const data = { reviewer: 'desk-4', nested: [1, null, 'ü'] };
    const params = {
      assertions: [{ label: 'com.example.review', data }],
      parent: { type: 'reference', reference: 'archive-4711' },
    };
    const { active } = await firstFragmentStore(filesAt(outputOf(await sign([publication], params, 'reference'))));
    assert.deepEqual(active.assertions?.find(({ label }) => label === 'com.example.review')?.data, data);
    assert.deepEqual(
      active.ingredients?.map(({ title }) => title),
      ['archive-4711'],
    );
  });

  test('carries the manifest of a file that is its parent', async () => {
    const signed = await service.runSync('/v2/sync/c2pa/video', { inputs: [fileInput(film)] });
    const params = { parent: { type: 'file', source: fileInput(outputOf(signed)) } };
    const { active, store } = await firstFragmentStore(filesAt(outputOf(await sign([publication], params, 'file'))));
    assert.deepEqual(
      active.ingredients?.map(({ relationship }) => relationship),
      ['parentOf'],
    );
    assert.equal(Object.keys(store.manifests).length, 2);
  });

  test('that is signed already becomes a component where a parent is given', async () => {
    const first = outputOf(await sign([publication], {}, 'component-source'));
    const params = { parent: { type: 'reference', reference: 'archive-4711' } };
    const { active } = await firstFragmentStore(filesAt(outputOf(await sign([first], params, 'component'))));
    const roles = active.ingredients?.map(({ title, relationship }) => [title, relationship]).sort();
    assert.deepEqual(roles, [
      ['archive-4711', 'parentOf'],
      ['evening', 'componentOf'],
    ]);
  });

  test('that was made anew states how, and cannot be signed as that again', async () => {
    const params = { digital_source_type: 'screenCapture', actions: [{ action: 'com.example.graded' }] };
    const output = outputOf(await sign([publication], params, 'made'));
    const { active } = await firstFragmentStore(filesAt(output));
    assert.deepEqual(active.ingredients ?? [], []);
    assert.deepEqual(active.assertions?.find(({ label }) => label === 'c2pa.actions.v2')?.data, {
      actions: [
        { action: 'c2pa.created', digitalSourceType: 'http://cv.iptc.org/newscodes/digitalsourcetype/screenCapture' },
        { action: 'com.example.graded' },
      ],
      allActionsIncluded: false,
    });
    const [again] = (await sign([output], params, 'made-again')).results;
    assert.equal(again?.error_details?.['reason'], 'ORIGIN_HAS_MANIFEST');
    assert.equal(existsSync(join(home, 'output/made-again')), false);
  });

  test('whose parent an override disables is an edit of its own source', async () => {
    const params = {
      parent: { type: 'reference', reference: 'archive-4711' },
      parent_overrides: [{ input_index: 0, parent: null }],
    };
    const { active } = await firstFragmentStore(filesAt(outputOf(await sign([publication], params, 'override'))));
    assert.deepEqual(
      active.ingredients?.map(({ title }) => title),
      ['evening'],
    );
  });

  test('is signed asynchronously, and over what an earlier request left there', async () => {
    const body = {
      inputs: [folderInput(publication)],
      params: patternParams,
      output: { type: 'local', name: 'async' },
    };
    for (const _round of ['first', 'second']) {
      const job = await service.waitFor(await service.submit('/v2/c2pa/fragmented', body));
      await assertSignedPublication(filesAt(publication), patterns, filesAt(outputOf(job)));
    }
    assert.deepEqual(readdirSync(join(home, 'output', 'async')), ['evening']);
  });
});

/** A publication that cannot be signed, the reason of its refusal, and the names that the error has to give. */
interface Refused {
  readonly name: string;
  readonly edit?: (files: Files) => Record<string, string | Uint8Array>;
  readonly params?: object;
  readonly reason: string;
  readonly names: readonly string[];
}

const refused: readonly Refused[] = [
  {
    name: 'a pattern that matches nothing',
    params: { frag_pattern: '*.cmfv' },
    edit: (files) => ({ ...files, ...Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`zz${i}.bin`, 'x'])) }),
    reason: 'PATTERN_NO_MATCH',
    names: ['*.cmfv', 'index_hi.m3u8'],
  },
  {
    name: 'several moof boxes in one fragment, as chunked CMAF has them',
    edit: (files) => ({
      ...files,
      'seg_hi_2.m4s': Buffer.concat([files['seg_hi_2.m4s'] as Buffer, files['seg_hi_3.m4s'] as Buffer]),
    }),
    reason: 'FRAGMENT_IS_CHUNKED',
    names: ['seg_hi_2.m4s'],
  },
  {
    name: 'a playlist that names a missing file',
    edit: ({ 'seg_lo_4.m4s': _removed, ...files }) => files,
    reason: 'PLAYLIST_FILE_MISSING',
    names: ['index_lo.m3u8', 'seg_lo_4.m4s'],
  },
  {
    name: 'a playlist that points outside the folder',
    edit: (files) => edited(files, 'index_lo.m3u8', (text) => text.replace('seg_lo_4', '../seg_lo_4')),
    reason: 'PLAYLIST_LEAVES_FOLDER',
    names: ['index_lo.m3u8', '../seg_lo_4.m4s'],
  },
  {
    name: 'a fragment that was cut short',
    edit: (files) => ({ ...files, 'seg_hi_1.m4s': (files['seg_hi_1.m4s'] as Buffer).subarray(0, -100) }),
    reason: 'BMFF_BOX_EXCEEDS_PARENT',
    names: ['seg_hi_1.m4s'],
  },
  {
    name: 'a fragment of another track',
    edit: (files) => ({ ...files, 'seg_hi_1.m4s': withTrackId(files['seg_hi_1.m4s'] as Buffer, 77) }),
    reason: 'FRAGMENT_MALFORMED',
    names: ['seg_hi_1.m4s'],
  },
  {
    name: 'an empty fragment',
    edit: (files) => ({ ...files, 'seg_hi_1.m4s': '' }),
    reason: 'FRAGMENT_MALFORMED',
    names: ['seg_hi_1.m4s'],
  },
  {
    name: 'segments of a transport stream',
    edit: () => ({
      'index.m3u8': '#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n0.ts\n#EXT-X-ENDLIST\n',
      '0.ts': Buffer.alloc(188, 0x47),
      'init.txt': '',
    }),
    params: { frag_pattern: '*.ts' },
    reason: 'SEGMENTS_NEED_PACKAGING',
    names: ['0.ts'],
  },
  {
    name: 'an MPD that defines entities',
    edit: (files) => ({
      ...files,
      'bomb.mpd': '<?xml version="1.0"?>\n<!DOCTYPE MPD [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>\n<MPD>&b;</MPD>',
    }),
    params: { playlist_pattern: '*.{m3u8,mpd}' },
    reason: 'PLAYLIST_MALFORMED',
    names: ['bomb.mpd', 'line 2'],
  },
];

describe('Refused, alone in its batch and with nothing left behind, is', () => {
  for (const [index, { name, edit = (files: Files) => files, params = {}, reason, names }] of refused.entries()) {
    test(name, async () => {
      const bad = writeFiles(join(folder, 'refused', String(index)), edit(filesAt(publication)));
      const batch = `batch-${index}`;
      const job = await sign([publication, bad], params, batch);

      const [good, failed] = job.results;
      assert.equal(job.status, 'failed');
      assert.equal(failed?.error_details?.reason, reason, failed?.error);
      for (const part of names) assert.ok(failed?.error?.includes(part), `${failed?.error} names ${part}`);
      const listed = failed?.error?.match(/"[^"]*"/g) ?? [];
      assert.ok(listed.length <= 11, 'a pattern and at most ten names');
      // A fault of the patterns fails the good publication as well.
      const isFolderToBlame = Object.keys(params).length === 0 || good?.status === 'succeeded';
      if (isFolderToBlame) assert.deepEqual(readdirSync(join(home, 'output', batch)), ['evening']);
      else assert.ok(!existsSync(join(home, 'output', batch)));
      const journal = join(home, 'data', 'staging');
      assert.deepEqual(existsSync(journal) ? readdirSync(journal) : [], []);
    });
  }
});

test('a folder where files are signed, and a file where folders are, is refused before there is a job', async () => {
  const refusals = [
    ['/v2/c2pa/video', { inputs: [fileInput(film), folderInput(publication)] }, 1],
    ['/v2/sync/c2pa/audio', { inputs: [folderInput(publication)] }, 0],
    ['/v2/c2pa/fragmented', { inputs: [folderInput(publication), fileInput(film)], params: patternParams }, 1],
    ['/v2/sync/c2pa/fragmented', { inputs: [fileInput(film)], params: patternParams }, 0],
  ] as const;
  for (const [path, body, inputIndex] of refusals) {
    const answer = await fetch(service.base + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const { error } = (await answer.json()) as { error: { code: string; details: { input_index: number } } };
    assert.equal(answer.status, 400);
    assert.equal(error.code, 'INVALID_INPUT_TYPE');
    assert.equal(error.details.input_index, inputIndex);
  }
});

test('a request without its patterns is refused', async () => {
  const answer = await fetch(`${service.base}/v2/c2pa/fragmented`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ inputs: [folderInput(publication)], params: { init_pattern: 'a', frag_pattern: 'b' } }),
  });
  assert.equal(answer.status, 400);
});

function edited(files: Files, path: string, edit: (text: string) => string): Record<string, string | Uint8Array> {
  return { ...files, [path]: edit(Buffer.from(files[path] as Uint8Array).toString('utf8')) };
}

/** Gives every track fragment of a fragment another track (tfhd, ISO/IEC 14496-12 §8.8.7). */
function withTrackId(fragment: Buffer, trackId: number): Buffer {
  const bytes = Buffer.from(fragment);
  for (let at = bytes.indexOf('tfhd'); at !== -1; at = bytes.indexOf('tfhd', at + 4))
    bytes.writeUInt32BE(trackId, at + 8);
  return bytes;
}
