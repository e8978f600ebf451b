import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { describePart, type MediaPart, type Rendition } from '#publications/media-part.ts';
import type { PublicationPatterns } from '#publications/publication.ts';
import { readPublication } from '#publications/read-publication.ts';
import { assertSameFrames, problemsOf } from '../support/judges/publication-judges.ts';
import { folderAt, folderOf, writeFiles } from '../support/publications/make-folder.ts';
import {
  makeFfmpegByteRanges,
  makeFfmpegDash,
  makeFfmpegHls,
  makeFilm,
  makeMediabunny,
  makeShaka,
  makeShakaByteRanges,
} from '../support/publications/make-publication.ts';
import { type SignedFolder, signFolder } from '../support/publications/sign-folder.ts';
import { merkleBoxIn } from '../support/publications/signed-publication.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const { signal } = new AbortController();
export const folder = temporaryFolder();
export const film = makeFilm(folder);
export const patterns: PublicationPatterns = { playlist: '*.{m3u8,mpd}', init: '*init*', frag: '*.m4s' };
const singleFiles: PublicationPatterns = { ...patterns, init: '*.{mp4,m4s}', frag: '*.{mp4,m4s}' };

type MadePublication = readonly [string, PublicationPatterns, number, () => string | Promise<string>];

export const USUAL: readonly MadePublication[] = [
  ['ffmpeg HLS, two variants in one folder', patterns, 2, () => makeFfmpegHls(film, join(folder, 'ffmpeg-hls'))],
  ['ffmpeg DASH and HLS', patterns, 2, () => makeFfmpegDash(film, join(folder, 'ffmpeg-dash'))],
  ['shaka-packager HLS and DASH', patterns, 2, () => makeShaka(film, join(folder, 'shaka'))],
  ['mediabunny HLS', patterns, 1, () => makeMediabunny(film, join(folder, 'mediabunny'))],
  ['ffmpeg HLS in one file', singleFiles, 1, () => makeFfmpegByteRanges(film, join(folder, 'ffmpeg-ranges'))],
];

export const IN_ONE_FILE: readonly MadePublication[] = [
  [
    'ffmpeg DASH in one file each',
    singleFiles,
    2,
    () =>
      makeFfmpegDash(
        film,
        join(folder, 'ffmpeg-dash-ranges'),
        '-seg_duration 1 -single_file 1 -use_template 0 -use_timeline 0',
      ),
  ],
  [
    'shaka-packager HLS and DASH in one file each',
    singleFiles,
    2,
    () => makeShakaByteRanges(film, join(folder, 'shaka-ranges')),
  ],
  [
    'shaka-packager DASH whose init segments begin behind the file type',
    singleFiles,
    2,
    () => {
      const made = makeShakaByteRanges(film, join(folder, 'shaka-behind-ftyp'));
      rmSync(join(made, 'master.m3u8'));
      rmSync(join(made, 'video.m3u8'));
      rmSync(join(made, 'audio.m3u8'));
      const mpd = join(made, 'manifest.mpd');
      writeFileSync(
        mpd,
        readFileSync(mpd, 'utf8').replace(
          /<BaseURL>(.*?)<\/BaseURL>.*?<Initialization range="0/gs,
          (head, file: string) => {
            const behind = readFileSync(join(made, file)).readUInt32BE(0);
            return head.replace(/0$/, String(behind));
          },
        ),
      );
      assert.match(readFileSync(mpd, 'utf8'), /Initialization range="(?!0).*Initialization range="(?!0)/s);
      return made;
    },
  ],
  [
    'shaka-packager DASH whose ranges of init segments go one byte into the index',
    singleFiles,
    2,
    () => {
      const made = makeShakaByteRanges(film, join(folder, 'shaka-into-index'));
      for (const name of ['master.m3u8', 'video.m3u8', 'audio.m3u8']) rmSync(join(made, name));
      const mpd = join(made, 'manifest.mpd');
      const longer = (_: string, start: string, last: string) => `${start}${Number(last) + 1}`;
      writeFileSync(mpd, readFileSync(mpd, 'utf8').replaceAll(/([Rr]ange="\d+-)(\d+)/g, longer));
      return made;
    },
  ],
  ['mediabunny HLS in one file', singleFiles, 1, () => makeMediabunny(film, join(folder, 'mediabunny-ranges'), true)],
];

/** Tests that publications are valid when they are signed, and play as before. */
export function testPublications(publications: readonly MadePublication[]): void {
  describe('every fragment is valid to the reference reader', () => {
    for (const [name, claimed, renditionCount, make] of publications) {
      test(name, async () => {
        const signed = await signFolder(folderAt(await make()), claimed);
        assert.equal(signed.renditions.length, renditionCount);
        await assertEveryFragmentValid(signed);
      });
    }
  });

  describe('the output plays as the input did', () => {
    for (const [name, claimed, , make] of publications) {
      test(name, async () => {
        const source = await make();
        const { output, renditions, publication } = await signFolder(folderAt(source), claimed);
        const target = writeFiles(join(folder, 'signed', name), output);
        const playable = publication.playlists.filter(isPlayable).map(({ path }) => path);
        if (playable.length > 0) assertSameFrames(target, source, playable);
        for (const [index, { init, fragments }] of renditions.entries()) {
          const whole = Buffer.concat([init, ...fragments].map((path) => output[path] as Uint8Array));
          const before = joined(source, publication.renditions[index] as Rendition);
          assertSameFramesIn(whole, before, init);
        }
        const again = await readPublication(
          folderOf(output),
          { playlist: patterns.playlist, init: '*', frag: '*.m4s' },
          signal,
        );
        const sorted = (found: readonly { init: string; fragments: readonly string[] }[]): string[] =>
          found.map(({ init, fragments }) => [init, ...fragments].join(' ')).sort();
        const found = again.renditions.map(({ init, fragments }) => ({
          init: describePart(init),
          fragments: fragments.map(describePart),
        }));
        assert.deepEqual(sorted(found), sorted(renditions));
      });
    }
  });
}

export async function assertEveryFragmentValid({ files, renditions }: SignedFolder): Promise<void> {
  for (const { init, fragments } of renditions) {
    assert.ok(fragments.length >= 6);
    for (const fragment of fragments) {
      assert.deepEqual(await problemsOf(files[init] as Buffer, files[fragment] as Buffer), [], fragment);
      const { hashes } = merkleBoxIn(files[fragment] as Buffer);
      assert(hashes === undefined || (hashes?.length ?? 0) > 0, 'a proof of no digests is left out');
    }
  }
}

/** ffmpeg leaves out the first segment of every SegmentList, its own included. */
function isPlayable({ path, text }: { path: string; text: string }): boolean {
  return path.startsWith('master') || (path.endsWith('.mpd') && !text.includes('<SegmentList'));
}

/** Init segment and fragments of a rendition as one file. */
function joined(directory: string, { init, fragments }: Rendition): Buffer {
  const bytesOf = ({ path, range }: MediaPart): Buffer => {
    const bytes = readFileSync(join(directory, path));
    return range === null ? bytes : bytes.subarray(range.offset, range.offset + range.length);
  };
  return Buffer.concat([init, ...fragments].map(bytesOf));
}

/** Asserts that two files decode to the same frames. */
function assertSameFramesIn(file: Buffer, other: Buffer, name: string): void {
  const [at, otherAt] = [
    writeFiles(join(folder, 'joined'), { [name]: file }),
    writeFiles(join(folder, 'before'), { [name]: other }),
  ];
  assertSameFrames(at, otherAt, [name]);
}
