import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { fileNameOf } from '#inputs/http/http-headers.ts';
import { folderNameOfUrl, inputName, MAX_SAFE_NAME_BYTES, nameOfUrl, safeName } from '#inputs/input-name.ts';

describe('the name of an input', () => {
  test('is always one safe segment of bounded length, whatever it is made from', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: 'binary', maxLength: 300 }), { maxLength: 3 }),
        fc.nat(),
        (candidates, index) => {
          const name = inputName(candidates, index);
          assert.ok(name.length > 0 && name !== '.' && name !== '..');
          assert.ok(Buffer.byteLength(name) <= MAX_SAFE_NAME_BYTES);
          assert.doesNotMatch(name, /[/\\\p{Cc}]/u);
          assert.equal(name, name.normalize('NFC'));
          assert.ok(name.isWellFormed());
          assert.equal(safeName(name), name, 'a safe name stays as it is');
        },
      ),
    );
  });

  test('is the first candidate that leaves anything, else made from the index', () => {
    assert.equal(inputName([null, undefined, '', ' / ', 'clip.mp4', 'other.mp4'], 3), 'clip.mp4');
    assert.equal(inputName(['..', '.', '\u0000', '///'], 3), 'input-3');
    assert.equal(inputName([], 0), 'input-0');
  });

  test('keeps the last segment, without control characters and marks that turn text around', () => {
    assert.equal(safeName('../../etc/passwd'), 'passwd');
    assert.equal(safeName('C:\\videos\\clip.mp4'), 'clip.mp4');
    assert.equal(safeName('folder/clip.mp4/'), 'clip.mp4');
    assert.equal(safeName('a\u0000b\nc\u202Ed.mp4'), 'abcd.mp4');
    assert.equal(safeName('e\u0301t\u00e9 2024.mov'), '\u00e9t\u00e9 2024.mov');
    assert.equal(safeName('\ud800.mp4'), '\ufffd.mp4');
  });

  test('is never one that the service stages under', () => {
    assert.equal(safeName(`.attestream-${'0'.repeat(32)}.part`), `attestream-${'0'.repeat(32)}.part`);
    assert.equal(safeName('\u200b.AtteStream'), 'AtteStream');
    assert.equal(safeName('attestream.mp4'), 'attestream.mp4');
  });

  test('is cut between characters, the extension kept', () => {
    const family = '👨‍👩‍👧';
    const name = safeName(`${family.repeat(40)}.mp4`);
    assert.equal(name, `${family.repeat(Math.floor((MAX_SAFE_NAME_BYTES - 4) / Buffer.byteLength(family)))}.mp4`);
    assert.equal(safeName(`${'a'.repeat(400)}.flac`), `${'a'.repeat(MAX_SAFE_NAME_BYTES - 5)}.flac`);
    assert.equal(Buffer.byteLength(safeName(`a.${'b'.repeat(400)}`)), MAX_SAFE_NAME_BYTES);
    assert.equal(Buffer.byteLength(safeName(`e${'\u0301'.repeat(400)}`)) > 100, true);
  });
});

describe('the name of a URL', () => {
  test('is its last path segment, decoded once', () => {
    assert.equal(nameOfUrl('https://host/a/my%20clip.mp4?token=secret#t'), 'my clip.mp4');
    assert.equal(nameOfUrl('https://host/a/100%2525.mp4'), '100%25.mp4');
    assert.equal(nameOfUrl('https://host/a/100%.mp4'), '100%.mp4');
    assert.equal(safeName(nameOfUrl('https://host/a%2F..%2Fclip.mp4')), 'clip.mp4');
    assert.equal(nameOfUrl('https://host/folder/'), 'folder');
    assert.equal(nameOfUrl('https://host/'), '');
    assert.equal(nameOfUrl('no url'), '');
  });

  test('is the bucket at the root of a bucket', () => {
    assert.equal(nameOfUrl('s3://media-bucket'), 'media-bucket');
    assert.equal(nameOfUrl('s3://media-bucket/'), 'media-bucket');
    assert.equal(nameOfUrl('s3://media-bucket/a/b.wav'), 'b.wav');
    assert.equal(nameOfUrl('s3://media-bucket/a/what? #1.wav'), 'what? #1.wav');
  });
});

describe('the name of a folder', () => {
  test('is that of its URL, or of the folder that a playlist lies in', () => {
    assert.equal(folderNameOfUrl('https://host/a/evening%20news/?token=x'), 'evening news');
    assert.equal(folderNameOfUrl('https://host/a/evening/master.m3u8?token=x'), 'evening');
    assert.equal(folderNameOfUrl('http://host/evening/manifest.MPD'), 'evening');
    assert.equal(folderNameOfUrl('https://host/master.m3u8'), '');
    assert.equal(folderNameOfUrl('s3://bucket/evening/master.m3u8'), 'master.m3u8');
  });
});

/** A header value as it arrives: its bytes read as Latin-1. */
const arriving = (text: string): string => Buffer.from(text, 'utf8').toString('latin1');

describe('the file name of a Content-Disposition', () => {
  const names: [string, string | undefined][] = [
    ['attachment; filename=clip.mp4', 'clip.mp4'],
    ['attachment; filename="a b; c.mp4"', 'a b; c.mp4'],
    ['attachment; filename="a \\"b\\".mp4"', 'a "b".mp4'],
    ['inline;FileName = clip.mp4 ; size=3', 'clip.mp4'],
    ['attachment; filename="x.mp4"; filename*=UTF-8\'\'%C3%A9t%C3%A9%20%E2%82%AC.mp4', 'été €.mp4'],
    ["attachment; filename*=iso-8859-1'de'Gr%FC%DFe.mp4; filename=x.mp4", 'Grüße.mp4'],
    ["attachment; filename*=UTF-8''%FF.mp4; filename=fallback.mp4", 'fallback.mp4'],
    ["attachment; filename*=UTF-8''%zz; filename=fallback.mp4", 'fallback.mp4'],
    ["attachment; filename*=klingon''x; filename=fallback.mp4", 'fallback.mp4'],
    ['attachment; filename=first.mp4; filename=second.mp4', 'first.mp4'],
    ['attachment; filename="=?UTF-8?B?w6l0w6kubXA0?="', 'été.mp4'],
    ['attachment; filename="=?UTF-8?Q?=C3=A9t=C3=A9_1.mp4?="', 'été 1.mp4'],
    [arriving('attachment; filename="été.mp4"'), 'été.mp4'],
    ['attachment; filename="\u00e9t\u00e9.mp4"', 'été.mp4'],
    ['attachment', undefined],
    ['', undefined],
    ['filename=no-type.mp4', undefined],
    [`attachment; filename=${'x'.repeat(5000)}`, undefined],
  ];
  for (const [header, name] of names) {
    test(`is ${JSON.stringify(name)} in ${JSON.stringify(header.slice(0, 80))}`, () => {
      assert.equal(fileNameOf(header), name);
    });
  }

  test('is found or not in anything, without an error', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => void fileNameOf(`attachment; filename*=${text}`)));
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => void fileNameOf(`attachment; ${text}`)));
    assert.equal(fileNameOf(undefined), undefined);
  });
});
