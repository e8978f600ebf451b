import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { id3 } from '#formats/id3/id3.ts';
import { embed, memorySource, refusalOf } from '../../support/memory-bytes.ts';
import { footer, frame, frames, manifestObject, mpegFrames, picture, tag, text, unsynchronised } from './tag-bytes.ts';

const AUDIO = mpegFrames(6);
const STORE = Buffer.from('JUMBF bytes');
const PREFIX_HEX = Buffer.from('\0application/c2pa\0c2pa\0c2pa manifest store\0', 'latin1').toString('hex');

/** The output for a file of these tags and some audio, from the first tag's header on. */
async function embedBehind(...tags: Buffer[]): Promise<Buffer> {
  const { output } = await embed(id3, Buffer.concat([...tags, AUDIO]), STORE);
  assert.deepEqual(output.subarray(-AUDIO.length), AUDIO);
  return output.subarray(0, -AUDIO.length);
}

const manifestFrame = (version: 2 | 3 | 4): Buffer =>
  frame(version, version === 2 ? 'GEO' : 'GEOB', manifestObject(STORE.toString()));

describe('the plan of a file without a tag', () => {
  test('puts a v2.4 tag with the manifest in front', async () => {
    const { output } = await embed(id3, AUDIO, Buffer.from('abc'));
    const expected = `49443304000000000038 47454f420000002e0000${PREFIX_HEX}616263`;
    assert.equal(output.toString('hex'), expected.replaceAll(' ', '') + AUDIO.toString('hex'));
  });

  test('leaves the manifest alone out of the hash', async () => {
    const { output, binding } = await embed(id3, AUDIO, STORE);
    const start = output.indexOf(STORE);
    const rest = [output.subarray(0, start), output.subarray(start + STORE.length)];
    const hash = createHash('sha256').update(Buffer.concat(rest)).digest();
    assert.deepEqual(binding.data['exclusions'], [{ start, length: STORE.length }]);
    assert.deepEqual(binding.data['hash'], [...hash]);
  });
});

describe('the plan of a file with a tag', () => {
  for (const version of [2, 3, 4] as const) {
    test(`puts the manifest first and keeps version 2.${version}, frames and padding`, async () => {
      const kept = Buffer.concat([frame(version, version === 2 ? 'TT2' : 'TIT2', text('x')), Buffer.alloc(33)]);
      const output = await embedBehind(tag(version, kept));
      assert.deepEqual(output, tag(version, Buffer.concat([manifestFrame(version), kept])));
    });
  }

  test('undoes unsynchronisation of a whole tag', async () => {
    const content = Buffer.concat([frame(3, 'TIT2', text('\xff\xfb')), Buffer.alloc(9)]);
    const output = await embedBehind(tag(3, unsynchronised(content), { flags: 0x80 }));
    assert.deepEqual(output, tag(3, Buffer.concat([manifestFrame(3), content])));
  });

  test('moves the unsynchronisation of a whole v2.4 tag to its frames', async () => {
    const content = unsynchronised(text('\xff\xfb'));
    const output = await embedBehind(tag(4, frame(4, 'TIT2', content), { flags: 0x80 }));
    assert.deepEqual(output, tag(4, Buffer.concat([manifestFrame(4), frame(4, 'TIT2', content, { flags: 2 })])));
  });

  test("corrects the sizes of frames that were written in the other version's way", async () => {
    const long = text('a'.repeat(300));
    for (const version of [3, 4] as const) {
      const wrong = [frame(version, 'TIT2', long, { wrongSize: true }), frame(version, 'TPE1', text('x'))];
      const right = [frame(version, 'TIT2', long), frame(version, 'TPE1', text('x'))];
      const output = await embedBehind(tag(version, Buffer.concat(wrong)));
      assert.deepEqual(output, tag(version, Buffer.concat([manifestFrame(version), ...right])));
    }
  });

  test('stops readers with zeros before bytes that are no frame', async () => {
    const title = frame(3, 'TIT2', text('x'));
    const output = await embedBehind(tag(3, Buffer.concat([title, Buffer.alloc(40, 0xee)])));
    const body = Buffer.concat([manifestFrame(3), title, Buffer.alloc(10), Buffer.alloc(40, 0xee)]);
    assert.deepEqual(output, tag(3, body));
  });

  test('writes the footer anew for MPEG audio', async () => {
    const title = frame(4, 'TIT2', text('x'));
    const before = tag(4, title, { flags: 0x10 });
    const after = tag(4, Buffer.concat([manifestFrame(4), title]), { flags: 0x10 });
    const output = await embedBehind(Buffer.concat([before, footer(before)]));
    assert.deepEqual(output, Buffer.concat([after, footer(after)]));
  });

  test('keeps an extended header unless it holds a checksum', async () => {
    const title = frame(4, 'TIT2', text('x'));
    const plain = Buffer.from([0, 0, 0, 6, 1, 0]);
    const checksum = Buffer.from([0, 0, 0, 12, 1, 0x20, 5, 1, 2, 3, 4, 5]);
    const kept = tag(4, Buffer.concat([plain, manifestFrame(4), title]), { flags: 0x40 });
    assert.deepEqual(await embedBehind(tag(4, Buffer.concat([plain, title]), { flags: 0x40 })), kept);
    const dropped = tag(4, Buffer.concat([manifestFrame(4), title]));
    assert.deepEqual(await embedBehind(tag(4, Buffer.concat([checksum, title]), { flags: 0x40 })), dropped);
  });

  test('replaces every manifest, under either media type, in every tag', async () => {
    const title = frame(4, 'TIT2', text('x'));
    const old = frame(4, 'GEOB', manifestObject('old', 'application/x-c2pa-manifest-store'));
    const other = frame(4, 'GEOB', manifestObject('not a manifest', 'text/plain'));
    const first = tag(4, Buffer.concat([old, title, old, other]));
    const second = tag(3, Buffer.concat([frame(3, 'GEOB', manifestObject('old')), frame(3, 'TPE1', text('y'))]));
    const output = await embedBehind(first, second);
    const expected = [tag(4, Buffer.concat([manifestFrame(4), title, other])), tag(3, frame(3, 'TPE1', text('y')))];
    assert.deepEqual(output, Buffer.concat(expected));
  });

  test('moves the offsets into the audio that chapters and indices store', async () => {
    const chapter = (...offsets: number[]): Buffer => {
      const bytes = Buffer.alloc(8);
      for (const [index, value] of offsets.entries()) bytes.writeUInt32BE(value, index * 4);
      return frame(4, 'CHAP', Buffer.concat([Buffer.from('ch1\0'), Buffer.alloc(8, 1), bytes, Buffer.from('rest')]));
    };
    const index = (start: number): Buffer => frame(4, 'ASPI', Buffer.from([0, 0, start >> 8, start, 0, 0, 0, 1]));
    const [a, b] = [chapter(0, 0xffff_ffff), chapter(120, 500)];
    const before = tag(4, Buffer.concat([a, b, index(96)]));
    assert.equal(before.length, 96);
    const shift = manifestFrame(4).length;
    const after = tag(4, Buffer.concat([manifestFrame(4), a, chapter(120 + shift, 500 + shift), index(96 + shift)]));
    assert.deepEqual(await embedBehind(before), after);
  });

  test('gives back the same bytes when a manifest of the same size is put in again', async () => {
    const once = await embed(id3, Buffer.concat([tag(3, frame(3, 'TIT2', text('x'))), AUDIO]), STORE);
    const twice = await embed(id3, once.output, STORE);
    assert.deepEqual(twice.output, once.output);
  });

  test('keeps frames, padding and audio of any tag', async () => {
    const ids = fc.stringMatching(/^[A-Z][A-Z0-9]{3}$/).filter((id) => id !== 'GEOB');
    const contents = fc.uint8Array({ minLength: 1, maxLength: 400 }).map((bytes) => Buffer.from(bytes));
    const versions = fc.constantFrom(3 as const, 4 as const);
    const models = fc.array(fc.tuple(ids, contents), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(versions, models, fc.nat(200), async (version, model, padding) => {
        const body = Buffer.concat([
          ...model.map(([id, content]) => frame(version, id, content)),
          Buffer.alloc(padding),
        ]);
        const output = await embedBehind(tag(version, body));
        const expected = [['GEOB', manifestObject(STORE.toString())], ...model];
        assert.deepEqual(frames(output).sort(), expected.sort());
      }),
      { numRuns: 60 },
    );
  });
});

describe('the layout of a tag', () => {
  test('returns the ranges of manifest and XMP, also in UTF-16 and with a data length', async () => {
    const wide = Buffer.from('\x01application/c2pa\0\xff\xfec\0\0\0\xff\xfed\0\0\0STORE', 'latin1');
    const body = Buffer.concat([
      frame(4, 'PRIV', Buffer.from('XMP\0<x/>', 'latin1')),
      frame(4, 'GEOB', Buffer.concat([Buffer.alloc(4), wide]), { flags: 1 }),
    ]);
    const input = Buffer.concat([tag(4, body), AUDIO]);
    const layout = await id3.readLayout(memorySource(input), new AbortController().signal);
    assert.deepEqual(layout.manifest, { offset: input.indexOf('STORE'), length: 5 });
    assert.deepEqual(layout.xmp, { offset: input.indexOf('<x/>'), length: 4 });
  });

  test('returns the range of a manifest in an unsynchronised tag', async () => {
    const body = frame(3, 'GEOB', manifestObject('STORE\xff'));
    const input = Buffer.concat([tag(3, unsynchronised(body), { flags: 0x80 }), AUDIO]);
    const layout = await id3.readLayout(memorySource(input), new AbortController().signal);
    assert.deepEqual(layout.manifest, { offset: input.indexOf('STORE'), length: 7 });
  });

  test('is read without the pictures in it', async () => {
    const cover = frame(4, 'APIC', picture(5_000_000));
    const input = Buffer.concat([tag(4, Buffer.concat([cover, frame(4, 'TIT2', text('x'))])), AUDIO]);
    const { bytesRead } = await embed(id3, input, STORE);
    assert.ok(bytesRead < 100_000, `${bytesRead} bytes were read`);
  });
});

describe('a file is refused', () => {
  const title = frame(4, 'TIT2', text('x'));
  const refusals: Record<string, [Buffer, string]> = {
    'when its tag is longer than the file': [tag(4, title, { sizeBytes: 5000 }), 'ID3_TAG_EXCEEDS_FILE'],
    'when its tag has a version that does not exist': [tag(5, title), 'ID3_HEADER_INVALID'],
    'when the size of its tag is no size': [Buffer.from('49443304000080000001', 'hex'), 'ID3_HEADER_INVALID'],
    'when its v2.2 tag is compressed': [tag(2, frame(2, 'TT2', text('x')), { flags: 0x40 }), 'ID3_HEADER_INVALID'],
    'when its extended header is longer than its tag': [
      tag(4, Buffer.concat([Buffer.from([0, 0, 1, 6, 1, 0]), title]), { flags: 0x40 }),
      'ID3_HEADER_INVALID',
    ],
    'when it has endless tags': [Buffer.concat(Array(20).fill(tag(4, title))), 'ID3_TOO_MANY_TAGS'],
    'when it has endless frames': [tag(4, Buffer.concat(Array(20_000).fill(title))), 'ID3_TOO_MANY_FRAMES'],
    'when neither MPEG audio nor FLAC follows': [
      Buffer.concat([tag(4, title), Buffer.alloc(90_000)]),
      'AUDIO_STREAM_UNKNOWN',
    ],
  };
  for (const [when, [start, reason]] of Object.entries(refusals)) {
    const audio = reason === 'AUDIO_STREAM_UNKNOWN' ? Buffer.alloc(0) : AUDIO;
    test(when, async () => assert.equal(await refusalOf(id3, Buffer.concat([start, audio])), reason));
  }

  test('when its unsynchronised tag is too large to rewrite', async () => {
    const large = tag(3, Buffer.alloc(65 * 1024 * 1024), { flags: 0x80 });
    assert.equal(await refusalOf(id3, Buffer.concat([large, AUDIO])), 'ID3_UNSYNCHRONISED_TAG_TOO_LARGE');
  });

  test('when the manifest is too large for its tag', async () => {
    const { signal } = new AbortController();
    const v22 = await id3.readLayout(memorySource(Buffer.concat([tag(2, Buffer.alloc(4)), AUDIO])), signal);
    assert.throws(() => id3.planEmbedding(v22, 17_000_000), { reason: 'ID3_FRAME_TOO_LARGE' });
    const v24 = await id3.readLayout(memorySource(Buffer.concat([tag(4, Buffer.alloc(400)), AUDIO])), signal);
    assert.throws(() => id3.planEmbedding(v24, 0x0fff_ff00), { reason: 'ID3_TAG_TOO_LARGE' });
  });

  test('with a reason, or not at all, whatever its bytes say', async () => {
    const body = Buffer.concat([
      frame(4, 'TIT2', text('x')),
      frame(4, 'GEOB', manifestObject('old')),
      frame(4, 'PRIV', Buffer.from('XMP\0<x/>')),
      Buffer.alloc(12),
    ]);
    for (const version of [2, 3, 4]) {
      const input = Buffer.concat([tag(version, body), AUDIO]);
      const tagLength = body.length + 10;
      const damage = fc.array(fc.tuple(fc.nat(tagLength - 1), fc.nat(255)), { minLength: 1, maxLength: 4 });
      await fc.assert(
        fc.asyncProperty(damage, fc.nat(input.length), async (changes, length) => {
          const damaged = Buffer.from(input);
          for (const [offset, value] of changes) damaged[offset] = value;
          for (const bytes of [damaged, damaged.subarray(0, length)]) {
            if (!id3.matches(bytes) || (await refusalOf(id3, bytes)) !== 'accepted') continue;
            const { output } = await embed(id3, bytes, STORE);
            assert.equal((await embed(id3, output, STORE)).output.length, output.length);
          }
        }),
        { numRuns: 150 },
      );
    }
  });
});
