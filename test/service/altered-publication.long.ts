import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { JobResultResponse } from '#contract/job.ts';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { filesAt, writeFiles } from '../support/publications/make-folder.ts';
import { makeFfmpegHls, makeFilm } from '../support/publications/make-publication.ts';
import { type Files, topBoxesOf } from '../support/publications/signed-publication.ts';
import { startServer } from '../support/servers/http-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { flipped, flippedAt, INCOMPLETE, MISMATCH, outputOf, told } from './told-origin.ts';

const folder = temporaryFolder();
const film = makeFilm(folder);
const patterns = { playlist: '*.m3u8', init: 'init*', frag: '*.m4s' };
const patternParams = { playlist_pattern: '*.m3u8', init_pattern: 'init*', frag_pattern: '*.m4s' };

let service: RunningService;
/** Two variants, muxed, of six fragments each: unsigned, and signed by the service. */
let unsigned: Files;
let signed: Files;
before(async () => {
  const home = join(folder, 'service');
  service = await startService({ folder: home });
  const made = makeFfmpegHls(film, join(folder, 'evening'));
  const files = filesAt(made);
  // Fragments of up to 256 KiB are copied in another way than larger ones.
  unsigned = { ...files, 'seg_lo_4.m4s': padded(files['seg_lo_4.m4s'] as Uint8Array, 1024 * 1024) };
  writeFiles(made, unsigned);
  signed = filesAt(outputOf(await sign(made)));
});
after(() => service?.stop());

let outputs = 0;

function sign(path: string, params: object = patternParams, route = 'fragmented'): Promise<JobResultResponse> {
  return service.runSync(`/v2/sync/c2pa/${route}`, {
    inputs: [path.startsWith('http') ? { type: 'remote_folder_url', url: path } : { type: 'local_folder_path', path }],
    output: { type: 'local', name: `output-${outputs++}` },
    params,
  });
}

/** A copy of the signed publication with some files replaced, added, or (undefined) taken away. */
function altered(name: string, changes: Readonly<Record<string, Uint8Array | string | undefined>>): string {
  const files = Object.entries({ ...signed, ...changes }).filter(([, bytes]) => bytes !== undefined);
  return writeFiles(join(folder, name), Object.fromEntries(files) as Files);
}

/** A playlist with its entry of a fragment edited. */
function playlist(path: string, edit: (text: string) => string): string {
  const text = Buffer.from(signed[path] as Uint8Array).toString('utf8');
  const edited = edit(text);
  assert.notEqual(edited, text);
  return edited;
}

const entryOf = (name: string): RegExp => new RegExp(`#EXTINF:[^\\n]*\\n${name}\\n`);

interface Alteration {
  readonly name: string;
  readonly changes: () => Readonly<Record<string, Uint8Array | string | undefined>>;
  /** Names that the warnings give. */
  readonly named: readonly RegExp[];
  /** The code of the failure; that of media that do not match unless given. */
  readonly code?: string;
}

const ALTERATIONS: readonly Alteration[] = [
  {
    name: 'a byte of a fragment in the middle of its second rendition',
    changes: () => ({ 'seg_lo_3.m4s': flipped(signed['seg_lo_3.m4s']) }),
    named: [/seg_lo_3\.m4s/, /init_lo\.mp4/],
  },
  {
    name: 'a byte of its second init segment',
    changes: () => ({ 'init_lo.mp4': flipped(signed['init_lo.mp4']) }),
    named: [/init_lo\.mp4/],
  },
  {
    name: 'the manifest taken out of its second init segment, and a byte of its fragments altered',
    code: INCOMPLETE,
    changes: () => ({ 'init_lo.mp4': unsigned['init_lo.mp4'], 'seg_lo_3.m4s': flipped(signed['seg_lo_3.m4s']) }),
    named: [/init_lo\.mp4/],
  },
  {
    name: 'two fragments swapped',
    code: INCOMPLETE,
    changes: () => ({ 'seg_lo_2.m4s': signed['seg_lo_3.m4s'], 'seg_lo_3.m4s': signed['seg_lo_2.m4s'] }),
    named: [/seg_lo_2\.m4s/, /seg_lo_3\.m4s/],
  },
  {
    name: 'the last fragment dropped',
    code: INCOMPLETE,
    changes: () => ({
      'seg_lo_5.m4s': undefined,
      'index_lo.m3u8': playlist('index_lo.m3u8', (text) => text.replace(entryOf('seg_lo_5.m4s'), '')),
    }),
    named: [/init_lo\.mp4/],
  },
  {
    name: 'a fragment dropped from the middle',
    code: INCOMPLETE,
    changes: () => ({
      'seg_hi_2.m4s': undefined,
      'index_hi.m3u8': playlist('index_hi.m3u8', (text) => text.replace(entryOf('seg_hi_2.m4s'), '')),
    }),
    named: [/init_hi\.mp4/],
  },
  {
    name: 'an unsigned fragment added',
    changes: () => ({
      'seg_lo_9.m4s': unsigned['seg_lo_0.m4s'],
      'index_lo.m3u8': playlist('index_lo.m3u8', (text) =>
        text.replace('#EXT-X-ENDLIST', '#EXTINF:1.0,\nseg_lo_9.m4s\n#EXT-X-ENDLIST'),
      ),
    }),
    named: [/seg_lo_9\.m4s/],
  },
  {
    name: 'a fragment of another rendition in place of one of its own',
    code: INCOMPLETE,
    changes: () => ({ 'seg_lo_3.m4s': signed['seg_hi_3.m4s'] }),
    named: [/seg_lo_3\.m4s/],
  },
];

for (const [route, params] of [
  ['fragmented', patternParams],
  ['package', {}],
] as const) {
  describe(`A signed publication that is signed again (${route})`, () => {
    for (const { name, changes, named, code = MISMATCH } of ALTERATIONS) {
      test(`is not vouched for with ${name}`, async () => {
        const path = altered(`${route}-${name.replaceAll(' ', '-')}`, changes());
        const { codes, allActionsIncluded, warnings } = await told(await sign(path, params, route), patterns);
        // Media that match are not called a mismatch.
        assert.ok(codes.includes(code), codes.join());
        assert.equal(codes.includes('assertion.bmffHash.match'), code !== MISMATCH, codes.join());
        assert.equal(codes.includes(MISMATCH), code === MISMATCH, codes.join());
        assert.equal(allActionsIncluded, false);
        for (const pattern of named)
          assert.ok(
            warnings.some((warning) => pattern.test(warning)),
            warnings.join('\n'),
          );
      });
    }

    test('is not vouched for where a playlist was changed, although all media are as they were signed', async () => {
      const path = altered(`${route}-playlist`, {
        'index_hi.m3u8': playlist('index_hi.m3u8', (text) => `${text}# a comment\n`),
      });
      const { codes, allActionsIncluded, warnings } = await told(await sign(path, params, route), patterns);
      assert.ok(codes.includes('com.attestream.presentation.mismatch'), codes.join());
      assert.ok(codes.includes('assertion.bmffHash.match') && !codes.includes(MISMATCH), codes.join());
      assert.equal(allActionsIncluded, false);
      assert.ok(
        warnings.some((warning) => /"index_hi\.m3u8" is not the signed one/.test(warning)),
        warnings.join('\n'),
      );
    });

    test('is a clean chain where nothing was altered', async () => {
      const { codes, allActionsIncluded, warnings } = await told(
        await sign(altered(`${route}-intact`, {}), params, route),
        patterns,
      );
      assert.ok(codes.includes('assertion.bmffHash.match') && !codes.includes(MISMATCH), codes.join());
      assert.equal(allActionsIncluded, true);
      assert.deepEqual(
        warnings.filter((warning) => /manifest|signed publication/.test(warning)),
        [],
      );
    });

    test('tells of a rendition that was added without a manifest', async () => {
      const path = altered(`${route}-added-rendition`, {
        'init_lo.mp4': unsigned['init_lo.mp4'],
        ...Object.fromEntries(Object.entries(unsigned).filter(([file]) => file.startsWith('seg_lo'))),
      });
      const { allActionsIncluded, warnings } = await told(await sign(path, params, route), patterns);
      assert.equal(allActionsIncluded, false);
      assert.ok(
        warnings.some((warning) => /init_lo\.mp4/.test(warning)),
        warnings.join('\n'),
      );
    });

    test('keeps the manifests of both where one init segment carries another manifest', async () => {
      const other = filesAt(outputOf(await sign(writeFiles(join(folder, `${route}-other`), unsigned))));
      const path = altered(`${route}-other-manifest`, {
        ...Object.fromEntries(Object.entries(other).filter(([file]) => /_lo[._]/.test(file))),
      });
      const { allActionsIncluded, warnings, ingredients } = await told(await sign(path, params, route), patterns);
      assert.equal(allActionsIncluded, false);
      assert.equal(ingredients.filter(({ active_manifest: manifest }) => manifest !== undefined).length, 2);
      assert.ok(
        warnings.some((warning) => /init_lo\.mp4/.test(warning)),
        warnings.join('\n'),
      );
    });
  });
}

test('a signed publication whose segments are made anew is not vouched for where one was altered', async () => {
  const path = altered('anew', { 'seg_lo_3.m4s': flipped(signed['seg_lo_3.m4s']) });
  const job = await sign(path, { existing: 'repackage' }, 'package');
  const { codes, allActionsIncluded, warnings } = await told(job, {
    playlist: '*.{m3u8,mpd}',
    init: 'init.mp4',
    frag: '*.m4s',
  });
  assert.ok(codes.includes(MISMATCH), codes.join());
  assert.equal(allActionsIncluded, false);
  assert.ok(
    warnings.some((warning) => /seg_lo_3\.m4s/.test(warning)),
    warnings.join('\n'),
  );
});

test('an altered fragment of more than 64 MiB is found', async () => {
  const large = join(folder, 'large');
  // The contents of a box that players skip are bound like all else; only the fragment's size matters here.
  const files = Object.fromEntries(
    Object.entries(unsigned).map(([file, bytes]) => [
      file,
      file === 'seg_lo_3.m4s' ? padded(bytes, 70 * 1024 * 1024) : bytes,
    ]),
  );
  const source = filesAt(outputOf(await sign(writeFiles(large, files))));
  const altered = { ...source, 'seg_lo_3.m4s': flippedAt(source['seg_lo_3.m4s'] as Uint8Array, 66 * 1024 * 1024) };
  const { codes, allActionsIncluded, warnings } = await told(
    await sign(writeFiles(join(folder, 'large-2'), altered)),
    patterns,
  );
  assert.ok(codes.includes(MISMATCH) && !codes.includes('assertion.bmffHash.match'), codes.join());
  assert.equal(allActionsIncluded, false);
  assert.ok(
    warnings.some((warning) => /seg_lo_3\.m4s/.test(warning)),
    warnings.join('\n'),
  );
});

/** A fragment with more in its mdat than players look at. */
function padded(bytes: Uint8Array, addedBytes: number): Buffer {
  const filling = Buffer.alloc(addedBytes);
  const boxes = topBoxesOf(bytes).map(({ type, bytes: box }) => {
    if (type !== 'mdat') return box;
    const grown = Buffer.concat([box, filling]);
    grown.writeUInt32BE(grown.length);
    return grown;
  });
  return Buffer.concat(boxes);
}

describe('A signed publication that changes between its validation and the copy', () => {
  for (const [what, file] of [
    ['a fragment', 'seg_lo_3.m4s'],
    ['a large fragment', 'seg_lo_4.m4s'],
    ['an init segment', 'init_lo.mp4'],
  ] as const) {
    test(`fails with ${what} that a server sends otherwise the last time, and nothing is published`, async (t) => {
      const bytes = signed[file] as Uint8Array;
      let asked = 0;
      const count = { total: Number.POSITIVE_INFINITY };
      const server = await startServer((request, response) => {
        const path = decodeURIComponent((request.url ?? '').slice('/p/'.length));
        const content = signed[path];
        if (content === undefined) return void response.writeHead(404).end();
        const isChanged = path === file && request.method === 'GET' && ++asked >= count.total;
        response.writeHead(200, { 'content-length': content.length });
        response.end(request.method === 'HEAD' ? undefined : isChanged ? flipped(bytes) : content);
      });
      t.after(() => server.close());
      const first = await sign(`${server.base}/p/master.m3u8`);
      outputOf(first);
      [count.total, asked] = [asked, 0];
      const { status, results } = await sign(`${server.base}/p/master.m3u8`);
      assert.equal(status, 'failed');
      assert.equal((results[0]?.error_details as { reason?: string } | undefined)?.reason, 'SOURCE_CHANGED');
      const output = join(folder, 'service', 'output', `output-${outputs - 1}`);
      assert.deepEqual(existsSync(output) ? Object.keys(filesAt(output)) : [], []);
    });
  }
});
