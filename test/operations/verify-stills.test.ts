import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { Verification } from '#contract/verification.ts';
import { makeMedia } from '../support/media/make-media.ts';
import { box } from '../support/media/movie-bytes.ts';
import { writeFiles } from '../support/publications/make-folder.ts';
import { topBoxesOf } from '../support/publications/signed-publication.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { shortened, withHeaders } from '../support/verification/file-forgeries.ts';
import { signBySdk } from '../support/verification/signed-updates.ts';
import { verifyInput } from '../support/verification/verify-input.ts';

// Pictures that the official SDK signs, however they begin.

const folder = temporaryFolder();
let count = 0;

async function verdict(name: string, bytes: Uint8Array): Promise<Verification> {
  const home = writeFiles(join(folder, `case-${count++}`), { [name]: bytes });
  return (await verifyInput({ type: 'local_file_path', path: join(home, name) }, home)).verification;
}

const SVG =
  '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9" fill="green"/></svg>';
const PROLOGS: Readonly<Record<string, string>> = {
  nothing: '',
  'a declaration': '<?xml version="1.0" encoding="UTF-8"?>\n',
  'a comment of some length': `<?xml version="1.0"?><!-- ${'made by a program '.repeat(40)}-->\n`,
  'a type of document':
    '<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd" [<!ENTITY a "b">]>\n',
};

describe('a picture of the official SDK is valid as it was signed, and not with a byte changed', () => {
  for (const [before, prolog] of Object.entries(PROLOGS)) {
    test(`in SVG behind ${before}`, async () => {
      const signed = await signBySdk(Buffer.from(prolog + SVG), 'image/svg+xml', 'create');
      assert.equal((await verdict('a.svg', signed)).state, 'valid');
      const altered = Buffer.from(signed.toString('latin1').replace('green', 'black'), 'latin1');
      assert.equal((await verdict('a.svg', altered)).state, 'invalid');
    });
  }

  test('in JPEG XL', async () => {
    const bytes = Buffer.concat([
      box('JXL ', Buffer.from('0d0a870a', 'hex')),
      box('ftyp', Buffer.from('jxl \0\0\0\0jxl ', 'latin1')),
      box('jxlc', Buffer.from('ff0a7f00884b', 'hex')),
    ]);
    const signed = await signBySdk(bytes, 'image/jxl', 'create');
    assert.equal((await verdict('a.jxl', signed)).state, 'valid');
    const store = topBoxesOf(signed).find(({ type }) => type === 'jumb')?.bytes ?? Buffer.of();
    const [before, behind] = [
      signed.subarray(0, signed.indexOf(store)),
      signed.subarray(signed.indexOf(store) + store.length),
    ];
    const padded = withHeaders(store, (headers) => {
      headers.set('pad', Buffer.concat([Buffer.from('other'), (headers.get('pad') as Buffer).subarray(5)]));
    });
    const other = box('free', Buffer.alloc(492));
    const forged = {
      'other bytes in the padding of its signature': [before, padded, behind],
      'a box in the space of its manifest': [before, shortened(store, other.length), other, behind],
      'a box in its manifest store': [before, box('jumb', shortened(store, other.length).subarray(8), other), behind],
      'a second manifest': [before, store, behind, store],
    };
    for (const [what, parts] of Object.entries(forged))
      assert.equal((await verdict('a.jxl', Buffer.concat(parts))).state, 'invalid', what);
    signed.writeUInt8(signed.readUInt8(signed.length - 1) ^ 1, signed.length - 1);
    assert.equal((await verdict('a.jxl', signed)).state, 'invalid');
  });
});

/** Returns the boxes of a signed AVIF, of which the second one is that of C2PA. */
async function signedAvif(): Promise<{ readonly unsigned: Buffer; readonly boxes: Buffer[] }> {
  makeMedia(folder, ['-f', 'lavfi', '-i', 'testsrc2=s=64x48', '-frames:v', '1', 'a.avif']);
  const unsigned = readFileSync(join(folder, 'a.avif'));
  return { unsigned, boxes: topBoxesOf(await signBySdk(unsigned, 'image/avif', 'create')).map(({ bytes }) => bytes) };
}

describe('a picture in AVIF', async () => {
  const { unsigned, boxes } = await signedAvif();
  const [ftyp, element, ...rest] = boxes as [Buffer, Buffer, ...Buffer[]];
  const storeAt = 8 + 16 + 4 + 'manifest\0'.length + 8;
  const store = element.subarray(storeAt, storeAt + element.readUInt32BE(storeAt));
  /** Returns the box of C2PA of a size that lets all others stand where they did, filled with zeros. */
  const elementOf = (others: readonly Buffer[], ...contents: Buffer[]) => {
    const sizeBytes = [ftyp, element].reduce((sum, each) => sum + each.length, 0) - Buffer.concat(others).length;
    const content = Buffer.concat([element.subarray(8, storeAt), ...contents, Buffer.alloc(element.length)]);
    return box('uuid', content.subarray(0, sizeBytes - 8));
  };
  const short = shortened(store, 9000);
  const text = Buffer.from('other bytes');

  test('has no manifest as it was made, and is valid as it was signed', async () => {
    assert.equal((await verdict('a.avif', unsigned)).state, 'none');
    for (const each of [element, elementOf([ftyp], short)]) {
      const { state, summary } = await verdict('a.avif', Buffer.concat([ftyp, each, ...rest]));
      assert.deepEqual([state, summary.split('.')[0]], ['valid', 'Unchanged since signing']);
    }
  });

  const padded = withHeaders(store, (headers) => {
    headers.set('pad', Buffer.concat([text, (headers.get('pad') as Buffer).subarray(text.length)]));
  });
  const large = box('ftyp', ftyp.subarray(8), Buffer.alloc(8000, text));
  const second = box('ftyp', ftyp.subarray(8));
  const forgeries: Readonly<Record<string, readonly Buffer[]>> = {
    'other bytes behind its manifest': [ftyp, elementOf([ftyp], short, text), ...rest],
    'other bytes in the padding of its signature': [ftyp, elementOf([ftyp], padded), ...rest],
    'other bytes in its file type': [large, elementOf([large], short), ...rest],
    'another file type': [ftyp, elementOf([ftyp, second], short), second, ...rest],
    'the brand of another container': [box('ftyp', Buffer.from('jxl '), ftyp.subarray(12)), element, ...rest],
    'an index of fragments that holds something else': [ftyp, element, ...rest, box('mfra', box('free', text))],
    'a box of C2PA without a manifest': [ftyp, element, ...rest, box('uuid', element.subarray(8, storeAt))],
  };
  for (const [what, forged] of Object.entries(forgeries)) {
    test(`is invalid with ${what}`, async () => {
      assert.equal((await verdict('a.avif', Buffer.concat(forged))).state, 'invalid');
    });
  }
});

test('a picture with two manifests is invalid', async () => {
  makeMedia(folder, ['-f', 'lavfi', '-i', 'testsrc2=s=64x48', '-frames:v', '1', 'a.png']);
  const png = await signBySdk(readFileSync(join(folder, 'a.png')), 'image/png', 'create');
  const at = png.indexOf('caBX') - 4;
  const chunk = png.subarray(at, at + 12 + png.readUInt32BE(at));
  const twice = Buffer.concat([png.subarray(0, at), chunk, png.subarray(at)]);
  assert.equal((await verdict('a.png', twice)).state, 'invalid');
});

test('an SVG without a manifest has none', async () => {
  for (const prolog of Object.values(PROLOGS))
    assert.equal((await verdict('a.svg', Buffer.from(prolog + SVG))).state, 'none');
});
