import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { describeContainer } from '#formats/unsupported-containers.ts';
import { mediaFolder, run } from '../support/judges/file-judges.ts';

const SECOND = ['-v', 'error', '-y', '-f', 'lavfi', '-i', 'sine=duration=1'];

describe('an unsupported file is described', () => {
  const folder = mediaFolder();
  const made: Record<string, [arguments: string, name: string]> = {
    'a.ogg': ['-c:a libvorbis', 'Ogg'],
    'flac.ogg': ['-c:a flac', 'Ogg'],
    'a.aiff': ['', 'AIFF'],
    'a.caf': ['', 'CAF'],
    'a.w64': ['', 'Wave64'],
    'a.mka': ['', 'Matroska or WebM'],
    'a.flv': ['', 'Flash Video'],
    'a.wma': ['', 'Windows Media'],
    'a.mpg': ['', 'an MPEG program stream'],
    'a.ts': ['', 'an MPEG transport stream'],
    'a.aac': ['', 'AAC without a container (ADTS)'],
    'a.au': ['', 'AU'],
  };
  for (const [file, [options, name]] of Object.entries(made)) {
    test(`${file} as ${name}`, () => {
      run(folder, 'ffmpeg', ...SECOND, ...options.split(' ').filter(Boolean), file);
      assert.equal(describeContainer(readFileSync(path.join(folder, file))), name);
    });
  }

  test('FLAC from a frame on, as FLAC without its beginning', () => {
    run(folder, 'ffmpeg', ...SECOND, 'a.flac');
    const flac = readFileSync(path.join(folder, 'a.flac'));
    assert.equal(
      describeContainer(flac.subarray(flac.indexOf(Buffer.from('fff8', 'hex')))),
      'FLAC without its beginning',
    );
  });

  test('big-endian WAV, and what a server says instead of media', () => {
    assert.equal(describeContainer(Buffer.from('RIFX\0\0\0\x04WAVE')), 'big-endian WAV (RIFX)');
    for (const text of [
      '<!DOCTYPE html>\n<html><body>Not found',
      '{"error": "not found"}',
      'Zugriff verweigert: für',
    ]) {
      assert.equal(describeContainer(Buffer.from(text)), 'text');
    }
  });

  test('and not at all where it starts like nothing', () => {
    assert.equal(describeContainer(Buffer.alloc(0)), null);
    assert.equal(describeContainer(Buffer.from('000102030405060708090a0b', 'hex')), null);
    assert.equal(describeContainer(Buffer.alloc(4096, 0x47).fill(0, 1, 189)), null);
  });
});
