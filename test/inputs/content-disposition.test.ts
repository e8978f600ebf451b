import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { fileNameOf } from '#inputs/http/http-headers.ts';

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
