import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { removeHlsAttribute, replaceHlsAttribute } from '#publications/playlists/hls-lines.ts';
import type { PublicationPatterns } from '#publications/publication.ts';
import { addedRates } from '#publications/rewriting/added-rates.ts';
import { relativeReference } from '#publications/rewriting/xml-edits.ts';
import { filesAt, folderOf } from '../support/publications/make-folder.ts';
import { makeFfmpegDash, makeFilm, makeShaka, makeShakaByteRanges } from '../support/publications/make-publication.ts';
import { signFolder } from '../support/publications/sign-folder.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
const film = makeFilm(folder);
const dash = filesAt(makeFfmpegDash(film, join(folder, 'dash')));
const shaka = filesAt(makeShaka(film, join(folder, 'shaka')));
const patterns: PublicationPatterns = { playlist: '*.{m3u8,mpd}', init: '*init*', frag: '*.m4s' };
const singleFiles: PublicationPatterns = { ...patterns, init: '*.mp4', frag: '*.mp4' };

function textOf(bytes: Uint8Array | undefined): string {
  return Buffer.from(bytes ?? []).toString('utf8');
}

/** The lines that a rewritten text has in another form, as `before → after`. */
function changesIn(before: string, after: string): string[] {
  const [first, second] = [before.split('\n'), after.split('\n')];
  assert.equal(first.length, second.length);
  return first.flatMap((line, at) => (line === second[at] ? [] : [`${line.trim()} → ${second[at]?.trim()}`]));
}

describe('a publication of separate files', () => {
  test('changes in its playlists nothing but declared bandwidths', async () => {
    const { rewritten, publication, files } = await signFolder(folderOf(dash), patterns);
    assert.deepEqual([...rewritten.keys()].sort(), ['manifest.mpd', 'master.m3u8']);
    for (const [path, text] of rewritten) {
      const before = textOf(dash[path]);
      assert.ok(changesIn(before, text).length > 0);
      const masked = (each: string): string => each.replace(/(bandwidth="?=?)\d+/gi, '$1');
      assert.equal(masked(text), masked(before));
    }
    const declared = (text: string): number[] =>
      [...text.matchAll(/bandwidth="(\d+)"/g)].map(([, value]) => Number(value));
    const [before, after] = [declared(textOf(dash['manifest.mpd'])), declared(rewritten.get('manifest.mpd') as string)];
    for (const [at, { fragments }] of publication.renditions.entries()) {
      const added = fragments
        .slice(0, 6)
        .map(({ path }) => (files[path] as Buffer).length - (dash[path] as Uint8Array).length);
      // A last segment of a few milliseconds counts with the one before it.
      const rise = (after[at] as number) - (before[at] as number);
      assert.ok(rise >= Math.max(...added) * 8 * 0.97 && rise <= Math.max(...added) * 8 * 2, `${rise} for ${added}`);
    }
  });

  test('keeps a bandwidth that files are named by', async () => {
    const mpd = textOf(dash['manifest.mpd']);
    const [, number = ''] = /<Representation [^>]*bandwidth="(\d+)"/.exec(mpd) ?? [];
    const renamed = Object.entries(dash)
      .filter(([path]) => !path.endsWith('.m3u8'))
      .map(([path, bytes]) => [path.replace(/-stream0/, `-stream0-${number}`), bytes]);
    const changed = mpd
      .replaceAll(/bandwidth="\d+"/g, `bandwidth="${number}"`)
      .replaceAll('-stream$RepresentationID$', '-stream$RepresentationID$-$Bandwidth$')
      .replaceAll(/<AdaptationSet id="[^0]".*?<\/AdaptationSet>/gs, '');
    assert.match(changed, /\$Bandwidth\$/);
    const source = { ...Object.fromEntries(renamed), 'manifest.mpd': changed };
    const { rewritten, output } = await signFolder(folderOf(source), patterns);
    assert.equal(rewritten.get('manifest.mpd') ?? changed, changed);
    assert.ok(Object.keys(output).some((path) => path.includes(number)));
  });

  test('keeps carriage returns, comments, unknown tags and variables', async () => {
    const master = textOf(dash['master.m3u8'])
      .replaceAll('\n', '\r\n')
      .replaceAll('media_', '{$m}_')
      .replace(
        '#EXTM3U\r\n',
        '#EXTM3U\r\n# a note\r\n#EXT-X-NEW:BANDWIDTH=5\r\n#EXT-X-DEFINE:NAME="m",VALUE="media"\r\n',
      );
    assert.match(master, /^\{\$m\}_\d+\.m3u8\r$/m);
    const mpd = textOf(dash['manifest.mpd'])
      .replaceAll('\n', '\r\n')
      .replace('<Period', '<!-- bandwidth="1" -->\r\n<Period');
    const { rewritten } = await signFolder(folderOf({ ...dash, 'master.m3u8': master, 'manifest.mpd': mpd }), patterns);
    for (const change of changesIn(master, rewritten.get('master.m3u8') as string))
      assert.match(change, /^#EXT-X-STREAM-INF/);
    for (const change of changesIn(mpd, rewritten.get('manifest.mpd') as string))
      assert.match(change, /^<Representation/);
  });

  test('keeps attributes of an MPD with names that every object has', async () => {
    const mpd = textOf(dash['manifest.mpd']).replaceAll('<Representation', '<Representation toString="1" valueOf="2"');
    const { rewritten } = await signFolder(folderOf({ ...dash, 'manifest.mpd': mpd }), patterns);
    assert.match(rewritten.get('manifest.mpd') as string, /<Representation toString="1" valueOf="2"/);
  });

  test('has I-frame playlists point at the same frames', async () => {
    const { rewritten, output } = await signFolder(folderOf(shaka), patterns);
    const framesIn = (text: string, bytesOf: (path: string) => Uint8Array): string[] =>
      [...text.matchAll(/BYTERANGE:(\d+)@(\d+)\n(.*)/g)].map(([, length, offset, path]) =>
        Buffer.from(bytesOf(`video/${path}`).subarray(Number(offset), Number(offset) + Number(length))).toString(
          'base64',
        ),
      );
    const before = framesIn(textOf(shaka['video/iframes.m3u8']), (path) => shaka[path] as Uint8Array);
    const after = framesIn(rewritten.get('video/iframes.m3u8') as string, (path) => output[path] as Uint8Array);
    assert.equal(before.length, 6);
    assert.deepEqual(after, before);
  });
});

test('a range of a whole file in a list of DASH is that file, and is not named any more', async () => {
  const made = filesAt(
    makeFfmpegDash(film, join(folder, 'dash-list'), '-seg_duration 1 -use_template 0 -hls_playlist 1'),
  );
  const rangeOf = (path: string): string => `0-${(made[path] as Uint8Array).length - 1}`;
  const mpd = textOf(made['manifest.mpd'])
    .replace(/<SegmentURL media="([^"]*)"/g, (whole, path: string) => `${whole} mediaRange="${rangeOf(path)}"`)
    .replace(/<Initialization sourceURL="([^"]*)"/g, (whole, path: string) => `${whole} range="${rangeOf(path)}"`);
  assert.match(mpd, / range="[\s\S]* mediaRange="/);
  const { rewritten, files, publication } = await signFolder(folderOf({ ...made, 'manifest.mpd': mpd }), patterns);
  assert.equal(publication.renditions.length, 2);
  assert.deepEqual(
    Object.keys(files).filter((path) => made[path] === undefined),
    [],
  );
  const masked = (text: string): string => text.replace(/(bandwidth=")\d+/g, '$1');
  assert.equal(masked(rewritten.get('manifest.mpd') as string), masked(textOf(made['manifest.mpd'])));
});

test('a byte range of a whole file is that file', async () => {
  const whole = (path: string): string => `BYTERANGE:${(shaka[`video/${path}`] as Uint8Array).length}@0`;
  const ranged = textOf(shaka['video/index.m3u8'])
    .replace(/#EXTINF:.*\n(.*m4s)/g, (tag, path: string) => tag.replace('\n', `\n#EXT-X-${whole(path)}\n`))
    .replace('URI="init.mp4"', `URI="init.mp4",BYTERANGE="${(shaka['video/init.mp4'] as Uint8Array).length}@0"`);
  const { output, renditions } = await signFolder(folderOf({ ...shaka, 'video/index.m3u8': ranged }), patterns);
  assert.ok(renditions.some(({ init }) => init === 'video/init.mp4'));
  assert.equal(output['video/index.m3u8'], textOf(shaka['video/index.m3u8']));
});

describe('a publication of byte ranges', () => {
  const made = filesAt(makeShakaByteRanges(film, join(folder, 'ranges')));

  test('names files in HLS and numbers them in DASH', async () => {
    const { rewritten, output } = await signFolder(folderOf(made), singleFiles);
    const hls = rewritten.get('video.m3u8') as string;
    assert.doesNotMatch(hls, /BYTERANGE/);
    assert.match(hls, /#EXT-X-MAP:URI="video\/init.mp4"\n#EXTINF:1.000,\nvideo\/00001.m4s\n/);
    const mpd = rewritten.get('manifest.mpd') as string;
    assert.doesNotMatch(mpd, /BaseURL|SegmentBase|on-demand|subsegment/);
    assert.match(
      mpd,
      /<SegmentTemplate timescale="12288" initialization="video\/init.mp4" media="video\/\$Number%05d\$.m4s" startNumber="1">/,
    );
    assert.match(mpd, /<S t="0" d="12288" r="5"\/>/);
    assert.ok(!('video.mp4' in output), 'the file is gone');
  });

  test('is rewritten in playlists that nobody claimed, too', async () => {
    const claimed = { ...singleFiles, playlist: 'video.m3u8', init: 'video.mp4', frag: 'video.mp4' };
    const { rewritten, publication, output } = await signFolder(folderOf({ ...made, 'junk.mpd': 'junk' }), claimed);
    assert.deepEqual([...rewritten.keys()].sort(), ['manifest.mpd', 'master.m3u8', 'video.m3u8']);
    assert.match(rewritten.get('manifest.mpd') as string, /<BaseURL>audio.mp4/);
    assert.ok(publication.otherPaths.includes('audio.mp4') && publication.otherPaths.includes('junk.mpd'));
    assert.ok('audio.mp4' in output);
  });

  test('keeps the frames of an I-frame playlist that nobody claimed and no other playlist names', async () => {
    const media = textOf(made['video.m3u8']);
    const frames = `#EXTM3U\n#EXT-X-I-FRAMES-ONLY\n${/#EXT-X-MAP:.*/.exec(media)?.[0]}\n#EXTINF:6,\n#EXT-X-BYTERANGE:`;
    const [, start = ''] = /BYTERANGE:\d+@(\d+)\nvideo/.exec(media) ?? [];
    const files = { 'video.m3u8': media, 'video.mp4': made['video.mp4'] as Uint8Array };
    const { output } = await signFolder(folderOf({ ...files, 'frames.m3u8': `${frames}2000@${start}\nvideo.mp4\n` }), {
      ...singleFiles,
      playlist: 'video.m3u8',
    });
    const [, length, offset, path = ''] =
      /BYTERANGE:(\d+)@(\d+)\n(.*)/.exec(textOf(Buffer.from(output['frames.m3u8'] ?? ''))) ?? [];
    const frame = Buffer.from(output[path] ?? '').subarray(Number(offset), Number(offset) + Number(length));
    assert.deepEqual(frame, Buffer.from(files['video.mp4']).subarray(Number(start), Number(start) + 2000));
  });

  test('can be read again where a gap named the bytes behind a segment', async () => {
    const [first = '', ...others] = textOf(made['video.m3u8']).split(/(?=#EXTINF)/);
    const playlist = [first, others[0], `#EXT-X-GAP\n${others[1]}`, ...others.slice(2)].join('');
    const files = { 'video.m3u8': playlist, 'video.mp4': made['video.mp4'] as Uint8Array };
    const { output, renditions } = await signFolder(folderOf(files), { ...singleFiles, playlist: 'video.m3u8' });
    const again = await signFolder(folderOf(output), patterns);
    assert.equal(again.renditions[0]?.fragments.length, 5);
    assert.deepEqual(again.renditions, renditions);
  });

  test('gets folders of its own where names are taken', async () => {
    const taken = { ...made, 'video/note.txt': 'x' };
    const { renditions } = await signFolder(folderOf(taken), singleFiles);
    assert.deepEqual(renditions.map(({ init }) => init).sort(), ['audio/init.mp4', 'video-2/init.mp4']);
  });

  test('is written with names that need escaping in addresses, templates and XML', async () => {
    const name = `a & b's $1 "é" #2`;
    const renamed: Record<string, string | Uint8Array> = {};
    for (const [path, bytes] of Object.entries(made)) {
      if (path === 'video.mp4') renamed[`${name}.mp4`] = bytes;
      else if (!/\.(m3u8|mpd)$/.test(path)) renamed[path] = bytes;
      else renamed[path] = textOf(bytes).replaceAll('video.mp4', encodeURIComponent(`${name}.mp4`));
    }
    const { output, renditions } = await signFolder(folderOf(renamed), singleFiles);
    const again = await signFolder(folderOf(output), { ...patterns, init: 'init.mp4', frag: '*.m4s' });
    assert.deepEqual(again.renditions.map(({ init }) => init).sort(), renditions.map(({ init }) => init).sort());
  });
});

describe('bit rates', () => {
  test('rise by the busiest half segment or more, rounded up', () => {
    assert.deepEqual(addedRates([]), { peak: 0, average: 0 });
    const even = Array.from({ length: 4 }, () => ({ durationSeconds: 2, addedBytes: 75 }));
    assert.deepEqual(addedRates(even), { peak: 300, average: 300 });
    assert.deepEqual(addedRates([...even, { durationSeconds: 0.01, addedBytes: 75 }]).peak, 598);
  });

  test('never rise by less than the average', () => {
    const segment = fc.record({
      durationSeconds: fc.double({ min: 0.01, max: 10, noNaN: true }),
      addedBytes: fc.nat(500),
    });
    fc.assert(
      fc.property(fc.array(segment, { minLength: 1, maxLength: 50 }), (segments) => {
        const { peak, average } = addedRates(segments);
        assert.ok(peak >= average);
      }),
    );
  });
});

describe('text surgery', () => {
  test('tells attributes from quoted text that looks like them', () => {
    const line = '#EXT-X-STREAM-INF:NAME="a,BANDWIDTH=1",AVERAGE-BANDWIDTH=5,BANDWIDTH=7,CODECS="x,y"\r';
    assert.equal(replaceHlsAttribute(line, 'BANDWIDTH', '9'), line.replace('=7', '=9'));
    assert.equal(removeHlsAttribute('#X:A="1",B=2', 'A'), '#X:B=2');
    assert.equal(removeHlsAttribute('#X:A="1",B=2', 'B'), '#X:A="1"');
  });

  test('makes references that lead back to the path', () => {
    const segment = fc
      .string({ minLength: 1, maxLength: 8, unit: 'grapheme' })
      .filter((name) => !/[/\0]|^\.{1,2}$/.test(name));
    const path = fc.array(segment, { minLength: 1, maxLength: 4 }).map((names) => names.join('/'));
    const encode = (each: string): string => each.split('/').map(encodeURIComponent).join('/');
    fc.assert(
      fc.property(path, path, (from, to) => {
        fc.pre(!/[\uD800-\uDFFF]/.test(`${from}${to}`.replace(/[\uD800-\uDBFF][\uDC00-\uDFFF]/g, '')));
        const url = new URL(relativeReference(from, to), `http://x.test/${encode(from)}`);
        assert.equal(decodeURIComponent(url.pathname), `/${to}`);
      }),
    );
  });
});
