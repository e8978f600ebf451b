import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { before, describe, test } from 'node:test';
import { formatOf } from '#formats/formats.ts';
import { id3 } from '#formats/id3/id3.ts';
import { assertValid, decodedMd5, mediaFolder, run, signBytes } from '../../support/judges/file-judges.ts';
import { footer, frame, manifestObject, tag, text } from '../id3/tag-bytes.ts';

describe('signed FLAC files are valid and sound the same', () => {
  const folder = mediaFolder();
  const file = (name: string): Buffer => readFileSync(path.join(folder, name));

  async function assertSignable(input: Buffer): Promise<Buffer> {
    assert.equal(formatOf(input.subarray(0, 65_536)), id3);
    const output = await signBytes(id3, input);
    await assertValid(output, 'audio/flac');
    assert.equal(decodedMd5(folder, output, 'flac'), decodedMd5(folder, input, 'flac'));
    return output;
  }

  before(() => {
    run(folder, 'ffmpeg', '-v', 'error', '-f', 'lavfi', '-i', 'sine=frequency=440:duration=1', 'tone.wav');
    run(folder, 'flac', '--silent', '--tag=TITLE=A tone', 'tone.wav', '-o', 'flac.flac');
    run(folder, 'ffmpeg', '-v', 'error', '-i', 'tone.wav', '-metadata', 'title=T', 'ffmpeg.flac');
    run(folder, 'sox', 'tone.wav', '-b', '24', 'sox.flac');
  });

  for (const encoder of ['flac', 'ffmpeg', 'sox']) {
    test(`from ${encoder}`, async () => {
      const output = await assertSignable(file(`${encoder}.flac`));
      await assertSignable(output);
    });
  }

  test('the reference decoder accepts them and finds the audio unchanged', async () => {
    const output = await signBytes(id3, file('flac.flac'));
    writeFileSync(path.join(folder, 'signed.flac'), output);
    run(folder, 'flac', '--silent', '--test', 'signed.flac');
  });

  test('with a tag in front, its frames kept and its old manifest gone', async () => {
    const old = tag(
      3,
      Buffer.concat([frame(3, 'GEOB', manifestObject('old manifest')), frame(3, 'TIT2', text('kept'))]),
    );
    const output = await assertSignable(Buffer.concat([old, file('flac.flac')]));
    assert.equal(output.indexOf('old manifest'), -1);
    assert.notEqual(output.indexOf('kept'), -1);
  });

  test('with a tag that ends with a footer', async () => {
    const old = tag(4, frame(4, 'TIT2', text('kept')), { flags: 0x10 });
    await assertSignable(Buffer.concat([old, footer(old), file('flac.flac')]));
  });
});
