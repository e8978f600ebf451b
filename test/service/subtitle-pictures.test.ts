import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startService } from '../../scripts/running-service.ts';
import { box, FTYP, fullBox, trak, u32 } from '../support/media/movie-bytes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { AS_SIGNED, copyOf, PATTERNS, rewrite, SAMPLE, signFolder, told, verifyFolder } from './signed-folders.ts';

/** Returns subtitles that show a picture (SMPTE ST 2052-1). */
function ttml(picture: string): string {
  return `<?xml version="1.0"?>\n<tt xmlns="http://www.w3.org/ns/ttml" xmlns:smpte="http://www.smpte-ra.org/schemas/2052-1/2010/smpte-tt"><body><div begin="0s" end="5s" smpte:backgroundImage="${picture}"/></body></tt>\n`;
}

test('the presentation does not cover pictures that subtitles name, which is said, replaced or not', async () => {
  await using service = await startService({ folder: temporaryFolder() });
  const sign = (input: string) => signFolder(service, '/v2/sync/c2pa/fragmented', input, PATTERNS);
  const verify = (path: string, params: object = {}) => verifyFolder(service, path, params);
  const subtitles =
    '<AdaptationSet contentType="text" mimeType="application/ttml+xml" lang="en"><Representation id="t" bandwidth="100"><BaseURL>lines.ttml</BaseURL></Representation></AdaptationSet></Period>';
  const withText = (picture: string): string =>
    copyOf(SAMPLE, (copy) => {
      rewrite(copy, 'manifest.mpd', (text) => text.replace('</Period>', subtitles));
      writeFileSync(join(copy, 'line.png'), Buffer.from('89504e470d0a1a0a00', 'hex'));
      writeFileSync(join(copy, 'lines.ttml'), ttml(picture));
    });
  const signed = await sign(withText('line.png'));
  const replaced = copyOf(signed, (copy) => writeFileSync(join(copy, 'line.png'), 'another'));
  for (const root of [signed, replaced]) {
    const { state, publication, summary } = await verify(root);
    assert.deepEqual(
      [state, publication?.presentation, publication?.deviations],
      ['valid', 'as_signed', { unsigned: 1 }],
    );
    const first = [{ kind: 'unsigned', part: 'files', count: 1, file: 'line.png', playlist: 'lines.ttml' }];
    assert.deepEqual(publication?.first, first);
    assert.match(summary, /also lead to one part that nobody signed, such as "line\.png"/);
    assert.ok(!summary.startsWith(AS_SIGNED));
  }
  const many = await sign(withText('line.png"/><image src="https://example.com/b.png'));
  assert.match((await verify(many)).summary, /also lead to 2 parts that nobody signed, such as "line\.png"/);
  const stored = copyOf(signed, (copy) => writeFileSync(join(copy, 'manifest.mpd.gz'), 'another'));
  const { state, summary } = await verify(stored);
  assert.equal(state, 'invalid');
  assert.match(summary, /^Not as signed: .*"manifest\.mpd\.gz"/);
  const inside = await sign(withText('#picture'));
  assert.deepEqual(told(await verify(inside)), { state: 'valid', presentation: 'as_signed', first: [] });
  rewrite(replaced, 'manifest.mpd', (text) => `${text}\n`);
  const equivalent = await verify(replaced, { presentation: 'equivalent' });
  assert.deepEqual(told(equivalent), { state: 'valid', presentation: 'equivalent', first: [] });
});

test('nor those that fragments of subtitles name, which is said as well', async () => {
  await using service = await startService({ folder: temporaryFolder() });
  const track = trak({ handlerType: 'subt', entries: [['stpp', 1]] });
  const init = [FTYP, box('moov', track, box('mvex', fullBox('trex', 0, u32(1, 1, 0, 0, 0))))];
  const fragment = (text: Buffer): Buffer[] => {
    const moof = (offset: number): Buffer => {
      const run = fullBox('trun', 0x000301, u32(1, offset, 5, text.length));
      return box('moof', fullBox('mfhd', 0, u32(1)), box('traf', fullBox('tfhd', 0x020000, u32(1)), run));
    };
    return [moof(moof(0).length + 8), box('mdat', text)];
  };
  const subtitles =
    '<AdaptationSet contentType="text" mimeType="application/mp4" lang="en"><Representation id="t" bandwidth="100" codecs="stpp"><SegmentList duration="5"><Initialization sourceURL="init-t.mp4"/><SegmentURL media="fragment-t.m4s"/></SegmentList></Representation></AdaptationSet></Period>';
  const summaryOf = async (picture: string): Promise<string> => {
    const input = copyOf(SAMPLE, (copy) => {
      rewrite(copy, 'manifest.mpd', (text) => text.replace('</Period>', subtitles));
      writeFileSync(join(copy, 'init-t.mp4'), Buffer.concat(init));
      writeFileSync(join(copy, 'fragment-t.m4s'), Buffer.concat(fragment(Buffer.from(ttml(picture)))));
    });
    const signed = await signFolder(service, '/v2/sync/c2pa/fragmented', input, PATTERNS);
    const { state, publication, summary } = await verifyFolder(service, signed);
    assert.deepEqual([state, publication?.presentation], ['valid', 'as_signed'], summary);
    return summary;
  };
  assert.match(await summaryOf('line.png'), /also lead to one part that nobody signed, such as "line\.png"/);
  assert.ok((await summaryOf('urn:mpeg:14496-30:subs:1')).startsWith(AS_SIGNED));
});
