import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { HEAD_SIZE_BYTES } from '#formats/format-handler.ts';
import { formatOf } from '#formats/formats.ts';
import { id3 } from '#formats/id3/id3.ts';
import { embed, memorySource, refusalOf } from '../../support/memory-bytes.ts';
import { footer, frame, picture, tag, text } from '../id3/tag-bytes.ts';

const STREAM_INFO = '00000022 1000 1000 00000e 00000e 0ac440f0 0000ac44 00000000000000000000000000000000';
const FLAC = Buffer.concat([Buffer.from('fLaC'), hex(STREAM_INFO), hex('810000020000'), Buffer.alloc(50, 7)]);
const TITLE = frame(4, 'TIT2', text('x'));

function hex(text: string): Buffer {
  return Buffer.from(text.replaceAll(' ', ''), 'hex');
}

describe('FLAC', () => {
  test('is recognised at the start, behind a tag, and behind a tag longer than the head', async () => {
    for (const prefix of [Buffer.alloc(0), tag(3, TITLE), tag(4, frame(4, 'APIC', picture(100_000)))]) {
      const input = Buffer.concat([prefix, FLAC]);
      assert.equal(formatOf(input.subarray(0, HEAD_SIZE_BYTES)), id3);
      const layout = await id3.readLayout(memorySource(input), new AbortController().signal);
      assert.equal(layout.mediaType, 'audio/flac');
      assert.deepEqual(layout.extensions, ['flac']);
      assert.equal(layout.hasVideo, false);
    }
  });

  test('is put directly behind the header and the frames of a tag, without its footer', async () => {
    const before = tag(4, TITLE, { flags: 0x10 });
    const { output } = await embed(id3, Buffer.concat([before, footer(before), FLAC]), Buffer.from('store'));
    const size = output.subarray(6, 10).reduce((sum, byte) => sum * 128 + byte, 0);
    assert.equal(output.readUInt8(5), 0);
    assert.deepEqual(output.subarray(10 + size), FLAC);
  });

  const damaged = (offset: number, ...bytes: number[]): Buffer => {
    const copy = Buffer.from(FLAC);
    copy.set(bytes, offset);
    return copy;
  };
  const refusals: Record<string, [Buffer, string]> = {
    'when it ends inside STREAMINFO': [FLAC.subarray(0, 30), 'FLAC_STREAMINFO_INVALID'],
    'when another block comes first': [damaged(4, 4), 'FLAC_STREAMINFO_INVALID'],
    'when STREAMINFO has another size': [damaged(7, 35), 'FLAC_STREAMINFO_INVALID'],
    'when its block sizes are out of range': [damaged(8, 0, 0), 'FLAC_STREAMINFO_INVALID'],
    'when its largest block is smaller than its smallest': [damaged(10, 0, 0), 'FLAC_STREAMINFO_INVALID'],
    'when its sample rate is 0': [damaged(18, 0, 0, 0), 'FLAC_STREAMINFO_INVALID'],
    'when a frame of its tag is encrypted': [
      Buffer.concat([tag(4, frame(4, 'TIT2', text('x'), { flags: 4 })), FLAC]),
      'ID3_FRAME_UNREADABLE',
    ],
    'when it has two tags': [Buffer.concat([tag(4, TITLE), tag(4, TITLE), FLAC]), 'ID3_SEVERAL_TAGS'],
  };
  for (const [when, [input, reason]] of Object.entries(refusals)) {
    test(`is refused ${when}`, async () => assert.equal(await refusalOf(id3, input), reason));
  }
});
