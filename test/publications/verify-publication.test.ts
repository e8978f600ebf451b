import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { SourceFolder } from '#bytes/source-folder.ts';
import { exclusion } from '#formats/isobmff/bmff-hash.ts';
import { createFragmentReader } from '#provenance/official-reader.ts';
import { MAX_READ_PART_BYTES, type Rendition } from '#publications/media-part.ts';
import { readPublication } from '#publications/read-publication.ts';
import { resultsOfEarlierManifest } from '#publications/verification/earlier-manifest-results.ts';
import { verifyParts } from '#publications/verification/part-findings.ts';
import type { PublicationVerdict } from '#publications/verification/publication-verdict.ts';
import { problemsOf } from '../support/judges/publication-judges.ts';
import { filesAt, folderOf } from '../support/publications/make-folder.ts';
import { makeFfmpegDash, makeFilm } from '../support/publications/make-publication.ts';
import { type OtherTool, signAsOthers } from '../support/publications/sign-as-others.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const { signal } = new AbortController();
const folder = temporaryFolder();
const files = Object.fromEntries(
  Object.entries(filesAt(makeFfmpegDash(makeFilm(folder), join(folder, 'dash')))).map(([path, bytes]) => [
    path,
    Buffer.from(bytes),
  ]),
);
const patterns = { playlist: '*.mpd', init: '*init*', frag: '*chunk*' };
const { renditions } = await readPublication(folderOf(files), patterns, signal);
const [first, second] = renditions as [Rendition, Rendition];

/** The kinds of findings, each with the parts that it names. */
async function found(
  changed: Readonly<Record<string, Buffer>>,
  read: readonly Rendition[] = renditions,
): Promise<string[]> {
  const { findings } = await verify(changed, read);
  return findings.map(({ kind, parts, locations }) => [kind, ...parts.map(({ path }) => path), ...locations].join(' '));
}

function verify(changed: Readonly<Record<string, Buffer>>, read = renditions): Promise<PublicationVerdict> {
  return verifyParts(folderOf(changed), read, signal);
}

function flipped(bytes: Buffer | undefined): Buffer {
  const changed = Buffer.from(bytes as Buffer);
  changed.writeUInt8((changed.at(-9) as number) ^ 1, changed.length - 9);
  return changed;
}

const FREE = Buffer.concat([Buffer.from('0000001066726565', 'hex'), Buffer.alloc(8, 7)]);

const TOOLS: Readonly<Record<string, OtherTool>> = {
  'leaf rows, and no field for proofs': {},
  'leaf rows, and null for proofs': { withoutProof: 'null' },
  'an upper row and proofs': { levels: 1 },
  'the root alone': { levels: 3 },
  'SHA-512': { algorithm: 'sha512', levels: 1 },
  'SHA-384': { algorithm: 'sha384' },
  'identifiers of its own': { ids: (index) => ({ uniqueId: 70_000 - index, localId: 4_000_000_000 }) },
  'a Merkle box at the end': { merkleBoxAt: 'end' },
  'boxes left out beside those that must be': { excluded: ['free', 'skip'], before: FREE },
  'a manifest for each rendition': { manifestEach: true, levels: 2 },
  'a binding of the second version': { label: 'c2pa.hash.bmff.v2' },
};

for (const [name, tool] of Object.entries(TOOLS)) {
  describe(`A publication that another tool signed, with ${name},`, async () => {
    const signed = await signAsOthers(files, renditions, tool);
    const target = second.fragments[2]?.path as string;

    test('is as it was signed, to both engines', async () => {
      for (const { init, fragments } of renditions) {
        for (const { path } of fragments) {
          assert.deepEqual(await problemsOf(signed[init.path] as Buffer, signed[path] as Buffer), [], path);
        }
      }
      assert.deepEqual(await found(signed), []);
    });

    test('is found out where a fragment was altered', async () => {
      // With the Merkle box last, the byte lies in it.
      const altered = { ...signed, [target]: flipped(signed[target]) };
      const [finding, ...others] = await found(altered);
      assert.ok(finding?.endsWith(target) || finding?.startsWith('added'), finding);
      assert.ok(others.length <= 1);
    });
  });
}

describe('The parts of a signed publication', async () => {
  const signed = await signAsOthers(files, renditions, { levels: 1 });
  const paths = second.fragments.map(({ path }) => path);
  const init = second.init.path;
  const count = paths.length;

  /** The second rendition with other fragments. */
  const withFragments = (edit: (fragments: Rendition['fragments']) => Rendition['fragments']): Rendition[] => [
    first,
    { init: second.init, fragments: edit(second.fragments) },
  ];

  test('are told apart where they were altered', async () => {
    assert.deepEqual(await found({ ...signed, [paths[3] as string]: flipped(signed[paths[3] as string]) }), [
      `altered ${paths[3]}`,
    ]);
    assert.deepEqual(await found({ ...signed, [init]: flipped(signed[init]) }), [`init-altered ${init}`]);
  });

  test('are missed at the start, in the middle and at the end', async () => {
    for (const gone of [0, 2, count - 1]) {
      const kept = withFragments((fragments) => fragments.filter((_part, index) => index !== gone));
      assert.deepEqual(await found(signed, kept), [`missing ${gone}`]);
    }
  });

  test('are told to be moved where their order is another', async () => {
    const swapped = withFragments(([a, b, c, ...rest]) => [a, c, b, ...rest] as Rendition['fragments']);
    assert.deepEqual(await found(signed, swapped), [`moved ${paths[2]} ${paths[1]}`]);
    const exchanged = { ...signed, [paths[1] as string]: signed[paths[2] as string] as Buffer };
    exchanged[paths[2] as string] = signed[paths[1] as string] as Buffer;
    assert.deepEqual(await found(exchanged), [`moved ${paths[1]} ${paths[2]}`]);
  });

  test('are told to be added where they are unsigned, there twice, or of another rendition', async () => {
    const more = withFragments((fragments) => [...fragments, { path: 'more.m4s', range: null }]);
    for (const extra of [
      files[paths[0] as string],
      signed[paths[0] as string],
      signed[first.fragments[0]?.path as string],
    ]) {
      assert.deepEqual(await found({ ...signed, 'more.m4s': extra as Buffer }, more), ['added more.m4s']);
    }
  });

  test('are told to be a rendition that was added, or is missing', async () => {
    const foreign = { ...signed, ...Object.fromEntries([init, ...paths].map((path) => [path, files[path] as Buffer])) };
    assert.deepEqual(await found(foreign), [`unsigned ${init}`, 'rendition-missing']);
    assert.deepEqual(await found(signed, [first]), ['rendition-missing']);
  });

  test('are not judged where their binding leaves out parts of boxes', async () => {
    const other = await signAsOthers(files, renditions, { exclusions: [exclusion('/moof/traf/tfhd')] });
    assert.deepEqual(await found(other), [`unjudged ${first.init.path}`, `unjudged ${init}`]);
  });

  test('are not vouched for by the official reader alone where one of them is too large for it', async () => {
    const other = folderOf(await signAsOthers(files, renditions, { exclusions: [exclusion('/moof/zzzz')] }));
    const verdict = await verifyParts(other, renditions, signal);
    const large = first.fragments[0]?.path as string;
    const open: SourceFolder['open'] = async (path, ...rest) => {
      const source = await other.open(path, ...rest);
      return path === large ? { ...source, sizeBytes: MAX_READ_PART_BYTES + 1 } : source;
    };
    const isVouchedFor = async (folder: Pick<SourceFolder, 'open' | 'name'>) => {
      const parts = { ...verdict, folder, reader: createFragmentReader(), anchors: null, signal };
      const results = await resultsOfEarlierManifest(0, parts);
      return results?.activeManifest?.success.some(({ code }) => code === 'assertion.bmffHash.match');
    };

    assert.equal(await isVouchedFor(other), true);
    assert.equal(await isVouchedFor({ name: 'large', open }), false);
  });

  test('are not judged by what the claim does not hold the hash of', async () => {
    const changed = Object.fromEntries(
      [first.init.path, init].map((path) => {
        const bytes = Buffer.from(signed[path] as Buffer);
        const at = bytes.indexOf('uniqueId');
        assert.ok(at > 0);
        bytes.write('x', at - 2 + 'merkle'.length, 'latin1');
        return [path, bytes];
      }),
    );
    assert.deepEqual(await found({ ...signed, ...changed }), [`unjudged ${first.init.path}`, `unjudged ${init}`]);
  });

  test('of any bytes are judged in bounded time, and never found intact', async () => {
    for (const bytes of [Buffer.alloc(0), Buffer.alloc(7), Buffer.alloc(100_000), Buffer.alloc(64, 0xff)]) {
      assert.deepEqual(await found({ ...signed, [paths[1] as string]: bytes }), [`altered ${paths[1]}`]);
    }
  });
});
