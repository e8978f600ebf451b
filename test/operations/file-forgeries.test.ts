import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import { crc32, deflateSync } from 'node:zlib';
import * as cborg from 'cborg';
import { manifestIn } from '#provenance/manifest-store.ts';
import { storeByHand, superbox } from '../provenance/manifest-store-bytes.ts';
import { makeManifest } from '../support/manifests/make-manifest.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import {
  boxOf,
  c2paBox,
  elementOf,
  filled,
  PLACES,
  riffChunk,
  type SignedFile,
  shortened,
  withHeaders,
  withOtherManifest,
} from '../support/verification/file-forgeries.ts';
import { CONTAINERS, decoded, makeSigned, otherMedia, verdictOn } from '../support/verification/forged-files.ts';

// Forgeries that need no key: every byte that a hash covers stays as it is. Numbers are pull requests of c2pa-rs.

const folder = temporaryFolder();
const ROOM_BYTES = 16_000;
/** Places that the long tier fills as well, by container; the others differ little from these. */
const TRIED: Readonly<Record<SignedFile['container'], readonly string[]>> = {
  riff: ['inside', 'in another header', 'zeros behind', 'decoy behind', 'data chunk before', 'LIST chunk behind'],
  id3: ['inside', 'in the padding', 'in another header'],
  isobmff: [
    'inside',
    'in the padding',
    'in another header',
    'decoy before',
    'C2PA box of another purpose behind',
    'C2PA box at the end',
  ],
};

async function stateOf(name: string, bytes: Uint8Array, files: Record<string, Uint8Array> = {}): Promise<string> {
  return (await verdictOn(name, { [name]: bytes, ...files }, folder)).state;
}

describe('a file is invalid where other bytes stand in what its hash leaves out (#2653, #2673)', () => {
  for (const name of Object.keys(CONTAINERS).filter((each) => each !== 'wide.wav')) {
    test(`in ${name}`, async () => {
      const file = await makeSigned(name, folder);
      assert.equal(await stateOf(name, file.bytes), 'valid');
      const media = otherMedia(name, file);
      for (const place of TRIED[file.container]) {
        const bytes = PLACES[file.container][place]?.(file, media, ROOM_BYTES) as Buffer;
        assert.equal(await stateOf(name, bytes), 'invalid', place);
      }
      const shorter = filled(file, elementOf(file, Buffer.concat([shortened(file.store, 500), Buffer.alloc(500)])));
      assert.equal(await stateOf(name, shorter), 'valid', 'zeros behind the store');
    });
  }

  test('which ffmpeg plays', async () => {
    for (const [name, place] of [
      ['sound.wav', 'data chunk behind'],
      ['film.avi', 'in the padding'],
    ] as const) {
      const file = await makeSigned(name, folder);
      const bytes = PLACES.riff[place]?.(file, otherMedia(name, file), ROOM_BYTES) as Buffer;
      assert.notEqual(decoded(name, bytes, folder), decoded(name, file.bytes, folder), name);
    }
  });

  for (const place of [
    ...['in another header', 'in another manifest', 'in the description of the store'],
    ...[
      'in a box with the label of a claim',
      'in a box with the label of assertions',
      'in a list of assertions before',
    ],
    'in a data box list with the label of assertions',
  ]) {
    test(`also ${place} in AVI, which players search for media`, async () => {
      const file = await makeSigned('film.avi', folder);
      const bytes = PLACES.riff[place]?.(file, otherMedia('film.avi', file), ROOM_BYTES) as Buffer;
      assert.notEqual(decoded('film.avi', bytes, folder), decoded('film.avi', file.bytes, folder));
      assert.equal(await stateOf('film.avi', bytes), 'invalid');
    });
  }

  test('also beside a sidecar, for which no reader looks into the element, in AVI', async () => {
    const file = await makeSigned('film.avi', folder);
    const bytes = withOtherManifest(file, otherMedia('film.avi', file));
    assert.notEqual(decoded('film.avi', bytes, folder), decoded('film.avi', file.bytes, folder));
    const stateBeside = async (film: Buffer) =>
      (await verdictOn('film.avi', { 'film.avi': film, 'its.c2pa': file.store }, folder, 'its.c2pa')).state;
    assert.equal(await stateBeside(file.bytes), 'valid');
    assert.equal(await stateBeside(bytes), 'invalid');
  });

  test('but not where what is signed looks like a chunk of media in AVI', async () => {
    // "01db", "6", and three zeros: 54 bytes of the second stream.
    const file = await makeSigned('film.avi', folder, 'urn:c2pa:7f9d0a0e-3f0b-4c52-9c0f-5ff4eb701db6');
    assert.equal(await stateOf('film.avi', file.bytes), 'valid');
  });

  test('in a picture', async () => {
    const { honest, forged } = await pictures();
    assert.deepEqual([await stateOf('a.png', honest), await stateOf('a.png', forged)], ['valid', 'invalid']);
  });
});

describe('a file with an element of C2PA is invalid without a readable manifest', () => {
  test('where one byte of the purpose of its box was changed, or the whole purpose (#2606, #2471)', async () => {
    const file = await makeSigned('film.mp4', folder);
    for (const place of [
      'unknown purpose',
      'purpose of a Merkle box',
      'purpose of an update',
      'purpose of an original',
    ]) {
      const bytes = PLACES.isobmff[place]?.(file, Buffer.alloc(0), 0) as Buffer;
      assert.equal(await stateOf('film.mp4', bytes), 'invalid', place);
    }
  });

  test('where the version of its box was changed', async () => {
    const { bytes } = await makeSigned('film.mp4', folder);
    const changed = Buffer.from(bytes);
    changed.writeUInt8(1, bytes.indexOf('d8fec3d61b0e483c92975828877ec481', 0, 'hex') + 16);
    assert.equal(await stateOf('film.mp4', changed), 'invalid');
  });

  test('where a Merkle box holds more than a place and its proof, or stands where the manifest has no tree', async () => {
    const file = await makeSigned('film.mp4', folder);
    const place = { uniqueId: 1, localId: 0, location: 0 };
    const sound = new Uint8Array(48_000).fill(7);
    for (const content of [
      { ...place, hashes: [sound] },
      { ...place, sound },
      place,
      { ...place, hashes: [new Uint8Array(32)] },
    ]) {
      const box = c2paBox('merkle', cborg.encode(content), Buffer.alloc(0));
      assert.equal(await stateOf('film.mp4', Buffer.concat([file.bytes, box])), 'invalid');
    }
  });

  test('where an update stands beside a manifest that is no original (#2471)', async () => {
    const file = await makeSigned('film.mp4', folder);
    const own = elementOf(file, shortened(file.store, ROOM_BYTES));
    const updateBytes = file.end - file.start - own.length - c2paBox('update', Buffer.alloc(0)).length;
    const update = c2paBox('update', Buffer.concat([file.store.subarray(0, updateBytes)]));
    assert.equal(await stateOf('film.mp4', filled(file, own, update)), 'invalid');
  });

  test('where its chunk is empty, or holds something else', async () => {
    const file = await makeSigned('sound.wav', folder);
    for (const content of [Buffer.alloc(0), Buffer.alloc(100), Buffer.from('no manifest')]) {
      const start = file.bytes.subarray(0, file.start);
      const bytes = Buffer.concat([start, riffChunk('C2PA', content)]);
      bytes.writeUInt32LE(bytes.length - 8, 4);
      assert.equal(await stateOf('sound.wav', bytes), 'invalid');
    }
  });

  test('but has none with a Merkle box alone', async () => {
    const { bytes, start, end } = await makeSigned('fragmented.mp4', folder);
    const merkle = c2paBox('merkle', cborg.encode({ uniqueId: 1, localId: 1, location: 0 }), Buffer.alloc(0));
    const alone = Buffer.concat([bytes.subarray(0, start), merkle, bytes.subarray(end)]);
    assert.equal(await stateOf('fragmented.mp4', alone), 'none');
  });
});

describe('a header that no signature covers holds what belongs there, and nothing else:', () => {
  const sound = Buffer.alloc(5000, 7);
  const der = (bytes: Buffer) =>
    Buffer.concat([Buffer.from([0x30, 0x82, bytes.length >> 8, bytes.length & 255]), bytes]);
  const stateWith = async (...headers: (readonly [unknown, unknown])[]): Promise<string> => {
    const file = await makeSigned('film.mp4', folder);
    const store = withHeaders(shortened(file.store, 12_000), (all) => {
      for (const [name, content] of headers) all.set(name, content);
    });
    const content = Buffer.concat([store, Buffer.alloc(Math.max(file.store.length - store.length, 0))]);
    return await stateOf('film.mp4', filled(file, elementOf(file, content)));
  };

  test('the time that early releases of the SDK wrote, and no longer text', async () => {
    const time = '2022-06-29T05:41:24.910675+00:00';
    assert.equal(await stateWith(['temp_signing_time', time]), 'valid');
    assert.equal(await stateWith(['temp_signing_time', time.replace('.', `.${'7'.repeat(40)}`)]), 'invalid');
  });

  for (const name of ['sigTst', 'sigTst2', 'rVals', 'ocspVals', 'x5chain', 33, 'pad2', 'temp_signing_time']) {
    test(`"${name}" is not bytes`, async () => {
      assert.equal(await stateWith([name, sound]), 'invalid');
    });
  }

  test('statuses of certificates are DER of its length, a few', async () => {
    const statuses = (...values: Buffer[]) => ['rVals', new Map([['ocspVals', values]])] as const;
    assert.equal(await stateWith(statuses(der(sound))), 'valid');
    assert.equal(await stateWith(statuses(Buffer.concat([der(sound), sound]))), 'invalid');
    assert.equal(await stateWith(statuses(...Array<Buffer>(9).fill(der(Buffer.alloc(10))))), 'invalid');
    assert.equal(
      await stateWith([
        'rVals',
        new Map<string, unknown>([
          ['ocspVals', [der(sound)]],
          ['note', sound],
        ]),
      ]),
      'invalid',
    );
  });

  test('a time-stamp confirms this signature', async () => {
    assert.equal(await stateWith(['sigTst2', new Map([['tstTokens', [new Map([['val', der(sound)]])]]])]), 'invalid');
  });
});

test('a manifest that was lifted into a sidecar counts only where its own chunk is what it leaves out (#2643)', async () => {
  for (const name of ['sound.wav', 'sound.mp3', 'film.avi']) {
    const file = await makeSigned(name, folder);
    const stem = name.slice(0, name.indexOf('.'));
    const sidecar = { [`${stem}.c2pa`]: Buffer.from(file.store) };
    const id =
      file.container === 'riff' ? riffChunk('LIST', otherMedia(name, file).subarray(0, 1000)) : Buffer.from('x');
    assert.equal(await stateOf(name, filled(file, id), sidecar), 'invalid', name);
    // MP3 alone has a header that the hash covers: without the media type, its frame is none of C2PA.
    if (file.container !== 'riff') continue;
    const whole = await verdictOn(name, { [name]: file.bytes, ...sidecar }, folder, `${stem}.c2pa`);
    assert.equal(whole.state, 'valid', name);
  }
});

describe('a named sidecar whose hash leaves out the element of C2PA in its file is valid with', () => {
  /** Another store of the same length and label, with media where an assertion stands. */
  const madeUp = (name: string, file: SignedFile): Buffer => {
    const label = manifestIn(file.store)?.label ?? '';
    const of = (media: Uint8Array) =>
      superbox('c2pa', superbox(label, superbox('c2pa.assertions', superbox('a', boxOf('bidb', media)))));
    return of(otherMedia(name, file).subarray(0, file.store.length - of(Buffer.alloc(0)).length));
  };
  const stateWith = async (name: string, file: SignedFile, content: Buffer, store = file.store): Promise<string> => {
    const elementBytes = Buffer.concat([content, Buffer.alloc(file.store.length - content.length)]);
    const files = { [name]: filled(file, elementOf(file, elementBytes)), 'other.c2pa': store };
    return (await verdictOn(name, files, folder, 'other.c2pa')).state;
  };

  for (const name of ['film.mp4', 'film.avi', 'sound.wav', 'sound.mp3']) {
    test(`its own store and zeros in ${name}, and with nothing else`, async () => {
      const file = await makeSigned(name, folder);
      const shorter = shortened(file.store, ROOM_BYTES);
      const noted = withHeaders(shorter, (headers) => headers.set('note', new Uint8Array(ROOM_BYTES - 100)));
      const states = {
        'its own store': await stateWith(name, file, file.store),
        'zeros behind it': await stateWith(name, file, shorter, shorter),
        'a store that was made up': await stateWith(name, file, madeUp(name, file)),
        'the same store with other padding': await stateWith(name, file, shorter),
        'headers that are not known': await stateWith(name, file, noted, noted),
        'zeros alone': await stateWith(name, file, Buffer.alloc(0)),
      };
      assert.deepEqual(states, {
        'its own store': 'valid',
        'zeros behind it': 'valid',
        'a store that was made up': 'invalid',
        'the same store with other padding': 'invalid',
        'headers that are not known': 'invalid',
        'zeros alone': 'invalid',
      });
    });
  }
});

test('a manifest that is its own parent is not followed without end (#2493)', async () => {
  const file = await makeSigned('sound.wav', folder);
  for (const chain of [{ a: ['a'] }, { a: ['b'], b: ['a'] }]) {
    const bytes = filled(file, elementOf(file, storeByHand(chain)));
    assert.ok(['invalid', 'refused'].includes(await stateOf('sound.wav', bytes)));
  }
});

/** A signed picture, and a copy with a text beside its shortened manifest. */
async function pictures(): Promise<{ honest: Buffer; forged: Buffer }> {
  const manifestBytes = 12_000;
  const start = Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    pngChunk('IHDR', Buffer.from('00000001000000010800000000', 'hex')),
  ]);
  const end = Buffer.concat([pngChunk('IDAT', deflateSync(Buffer.alloc(2))), pngChunk('IEND', Buffer.alloc(0))]);
  const hash = [...createHash('sha256').update(start).update(end).digest()];
  const exclusions = [{ start: start.length, length: manifestBytes + 12 }];
  const data = { exclusions, name: 'a', alg: 'sha256', hash, pad: [] };
  const store = await makeManifest({ label: 'c2pa.hash.data', data }, manifestBytes);
  const text = pngChunk('tEXt', Buffer.from(`Comment\0${'not signed '.repeat(40)}`));
  return {
    honest: Buffer.concat([start, pngChunk('caBX', store), end]),
    forged: Buffer.concat([start, pngChunk('caBX', shortened(store, text.length)), text, end]),
  };
}

function pngChunk(type: string, data: Uint8Array): Buffer {
  const chunk = Buffer.concat([Buffer.alloc(4), Buffer.from(type, 'latin1'), data, Buffer.alloc(4)]);
  chunk.writeUInt32BE(data.length);
  chunk.writeUInt32BE(crc32(chunk.subarray(4, -4)), chunk.length - 4);
  return chunk;
}
