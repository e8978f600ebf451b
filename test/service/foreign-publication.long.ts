import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { JobResultResponse } from '#contract/job.ts';
import { exclusion } from '#formats/isobmff/bmff-hash.ts';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { filesAt, writeFiles } from '../support/publications/make-folder.ts';
import { ffmpeg, makeFfmpegHls, makeFilm } from '../support/publications/make-publication.ts';
import { type OtherTool, signAsOthers } from '../support/publications/sign-as-others.ts';
import { type Files, renditionsOf, topBoxesOf } from '../support/publications/signed-publication.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { flipped, flippedAt, MISMATCH, outputOf, reasonsOf, told } from './told-origin.ts';

const folder = temporaryFolder();
const film = makeFilm(folder);
const patterns = { playlist: '*.m3u8', init: 'init*', frag: '*.m4s' };
const patternParams = { playlist_pattern: '*.m3u8', init_pattern: 'init*', frag_pattern: '*.m4s' };
/** Byte ranges become files by these names. */
const LAID_OUT_ANEW = { playlist: '*.m3u8', init: 'init.mp4', frag: '*.m4s' };

/** Leaves out what is not there; but nothing of this kind is judged by our own pass. */
const NESTED = exclusion('/meta/iloc');

let service: RunningService;
let unsigned: Files;
before(async () => {
  service = await startService({ folder: join(folder, 'service') });
  unsigned = filesAt(makeFfmpegHls(film, join(folder, 'evening')));
});
after(() => service?.stop());

let outputs = 0;

function sign(path: string): Promise<JobResultResponse> {
  return service.runSync('/v2/sync/c2pa/fragmented', {
    inputs: [{ type: 'local_folder_path', path }],
    output: { type: 'local', name: `output-${outputs++}` },
    params: patternParams,
  });
}

describe('A publication that another tool signed', () => {
  async function signedByOthers(name: string, tool: OtherTool): Promise<string> {
    const files = Object.fromEntries(Object.entries(unsigned).map(([path, bytes]) => [path, Buffer.from(bytes)]));
    return writeFiles(join(folder, name), await signAsOthers(files, await renditionsOf(unsigned, patterns), tool));
  }

  test('is not vouched for where a playlist plays a fragment of it twice, although all media are as they were signed', async () => {
    const path = await signedByOthers('played-twice', {});
    const entry = /#EXTINF:[^\n]*\nseg_lo_2\.m4s\n/;
    const text = readFileSync(join(path, 'index_lo.m3u8'), 'utf8');
    writeFiles(path, { 'index_lo.m3u8': text.replace(entry, (found) => found + found) });
    const { codes, allActionsIncluded, warnings } = await told(await sign(path), patterns);
    assert.ok(codes.includes('com.attestream.publication.mismatch'), codes.join());
    assert.ok(codes.includes('assertion.bmffHash.match') && !codes.includes(MISMATCH), codes.join());
    assert.equal(allActionsIncluded, false);
    assert.ok(
      warnings.some((warning) => /"index_lo\.m3u8", line \d+\): "seg_lo_2\.m4s" is played again/.test(warning)),
      warnings.join('\n'),
    );
  });

  test('keeps all chains where every rendition has a manifest of its own', async () => {
    const job = await sign(await signedByOthers('each', { manifestEach: true, levels: 1 }));
    const { codes, ingredients } = await told(job, patterns);
    assert.ok(codes.includes('assertion.bmffHash.match') && !codes.includes(MISMATCH), codes.join());
    assert.deepEqual(
      ingredients.map(({ relationship }) => relationship),
      ['parentOf', 'componentOf'],
    );
    assert.deepEqual(reasonsOf(job), ['PUBLICATION_MANIFESTS_DIFFER']);
  });

  test('is left to the official reader where its binding is of a kind that is not known', async () => {
    const path = await signedByOthers('nested', { exclusions: [NESTED] });
    const job = await sign(path);
    const { codes, allActionsIncluded } = await told(job, patterns);
    assert.ok(codes.includes('assertion.bmffHash.match') && !codes.includes(MISMATCH), codes.join());
    assert.equal(allActionsIncluded, false);
    assert.deepEqual(reasonsOf(job), ['PUBLICATION_NOT_VERIFIED', 'PUBLICATION_NOT_VERIFIED']);

    const files = filesAt(path);
    const changed = { ...files, 'seg_lo_3.m4s': flipped(files['seg_lo_3.m4s']) };
    const altered = await told(await sign(writeFiles(join(folder, 'nested-altered'), changed)), patterns);
    assert.ok(altered.codes.includes(MISMATCH), altered.codes.join());
  });
});

test('byte ranges that are bound as fragments are validated as such', async () => {
  const names = ['init_hi.mp4', ...[0, 1, 2, 3, 4, 5].map((number) => `seg_hi_${number}.m4s`)];
  const joined = (files: Files): Record<string, string | Uint8Array> => {
    let at = 0;
    const [map, ...entries] = names.map((name) => {
      const length = files[name]?.length as number;
      const range = `${length}@${at}`;
      at += length;
      return range;
    });
    const lines = entries.map((range) => `#EXTINF:1.0,\n#EXT-X-BYTERANGE:${range}\ninit_media.m4s\n`);
    const head = `#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:2\n#EXT-X-MAP:URI="init_media.m4s",BYTERANGE="${map}"\n`;
    const media = Buffer.concat(names.map((name) => files[name] as Uint8Array));
    return { 'index.m3u8': `${head}${lines.join('')}#EXT-X-ENDLIST\n`, 'init_media.m4s': media };
  };
  const own = await signOne(Object.fromEntries(Object.entries(unsigned).filter(([file]) => /_hi[._]/.test(file))));
  const intact = await told(await sign(writeFiles(join(folder, 'ranges-1'), joined(own))), LAID_OUT_ANEW);
  assert.ok(intact.codes.includes('assertion.bmffHash.match') && !intact.codes.includes(MISMATCH), intact.codes.join());
  // Whoever laid the fragments out anew wrote a playlist that nobody signed.
  assert.ok(intact.codes.includes('com.attestream.presentation.mismatch'), intact.codes.join());
  assert.equal(intact.allActionsIncluded, false);
  const changed = { ...own, 'seg_hi_3.m4s': flipped(own['seg_hi_3.m4s']) };
  const bad = await told(await sign(writeFiles(join(folder, 'ranges-2'), joined(changed))), LAID_OUT_ANEW);
  assert.ok(bad.codes.includes(MISMATCH), bad.codes.join());
  assert.equal(bad.allActionsIncluded, false);
});

/** Signs a publication of files, and returns those of the output. */
async function signOne(files: Files): Promise<Files> {
  return filesAt(outputOf(await sign(writeFiles(join(folder, `one-${outputs}`), files))));
}

test('byte ranges of a file that is bound as a whole are validated as a whole', async () => {
  ffmpeg(folder, ['-i', film], '-map 0:v -c copy -movflags +frag_keyframe+empty_moov+default_base_moof whole.mp4');
  const job = await service.runSync('/v2/sync/c2pa/video', {
    inputs: [{ type: 'local_file_path', path: join(folder, 'whole.mp4') }],
    output: { type: 'local', name: `output-${outputs++}` },
  });
  const bytes = readFileSync(outputOf(job));
  const whole = rangesOf(bytes);
  const intact = await told(await sign(writeFiles(join(folder, 'whole-1'), whole)), LAID_OUT_ANEW);
  assert.ok(!intact.codes.includes(MISMATCH), intact.codes.join());
  const broken = flippedAt(bytes, bytes.length >> 1);
  const bad = await told(await sign(writeFiles(join(folder, 'whole-2'), rangesOf(broken))), LAID_OUT_ANEW);
  assert.ok(bad.codes.includes(MISMATCH), bad.codes.join());
  assert.equal(bad.allActionsIncluded, false);
});

/** A playlist of byte ranges over a fragmented file. */
function rangesOf(file: Buffer): Record<string, string | Uint8Array> {
  let at = 0;
  const placed = topBoxesOf(file).map(({ type, bytes }) => {
    const box = { type, offset: at, sizeBytes: bytes.length };
    at += bytes.length;
    return box;
  });
  const first = placed.find(({ type }) => type === 'moof')?.offset as number;
  const moofs = placed.filter(({ type }) => type === 'moof');
  const entries = moofs.map(({ offset }) => {
    const mdat = placed.find(({ type, offset: other }) => type === 'mdat' && other > offset);
    const length = (mdat?.offset as number) + (mdat?.sizeBytes as number) - offset;
    return `#EXTINF:1.0,\n#EXT-X-BYTERANGE:${length}@${offset}\ninit_media.m4s\n`;
  });
  const lines = `#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:2\n#EXT-X-MAP:URI="init_media.m4s",BYTERANGE="${first}@0"\n`;
  return { 'index.m3u8': `${lines}${entries.join('')}#EXT-X-ENDLIST\n`, 'init_media.m4s': file };
}
