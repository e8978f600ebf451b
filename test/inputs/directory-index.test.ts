import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { readDirectoryIndex } from '#inputs/http/directory-index.ts';

const FOLDER = new URL('http://host/a/talk/');

/** Names, kinds and sizes of what a page lists. */
function listed(text: string, mediaType = 'text/html', url = FOLDER) {
  return (
    readDirectoryIndex(text, mediaType, url)?.map(({ name, isFolder, sizeBytes }) => [name, isFolder, sizeBytes]) ??
    null
  );
}

const page = (body: string): string => `<html><head><title>Index of /a/talk/</title></head><body>${body}</body></html>`;

describe('a page that lists a directory', () => {
  test('is known by its title, or as JSON by its shape', () => {
    assert.deepEqual(listed(page('')), []);
    assert.deepEqual(listed('<TITLE>\n  Directory listing for /a/</TITLE>'), []);
    assert.equal(listed('<title>The index of films</title><a href="a.mp4">a</a>'), null);
    assert.deepEqual(listed('[]', 'application/json'), []);
    for (const other of ['{}', '[', '[1]', '[{"name":1}]', 'null']) {
      assert.equal(listed(other, 'application/json'), null, other);
    }
  });

  test('is HTML text, and no media that holds a title', () => {
    const title = '<title>Index of /a/</title>';
    for (const beginning of [
      '\0\0\0\x20free',
      'ID3',
      'WEBVTT\n\nNOTE ',
      '<html>\0',
      '<?xml version="1.0"?><tt>',
      '<tt>',
    ]) {
      assert.equal(listed(`${beginning}${title}`), null, beginning);
    }
    const declared =
      '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN">\n<html>';
    for (const beginning of [declared, '<!DOCTYPE HTML>\n<html>', '\uFEFF\r\n<HTML lang="en">', '<head>']) {
      assert.deepEqual(listed(`${beginning}${title}`), [], beginning);
    }
  });

  test('tells sizes to the byte or not at all', () => {
    const line = (size: string): string => page(`<a href="a.mp4">a.mp4</a>   21-Nov-2026 15:00   ${size}\r\n`);
    assert.deepEqual(listed(line('1234567')), [['a.mp4', false, 1234567]]);
    for (const rounded of ['1.2M', '12K', '-', '', '12 34', '1e9']) {
      assert.deepEqual(listed(line(rounded)), [['a.mp4', false, null]], rounded);
    }
    assert.deepEqual(listed(page('<a href="2026">2026</a> 17')), [['2026', false, null]], 'a number without a date');
  });

  test('names files by what their addresses say, once decoded', () => {
    const links = [
      'a%20b.mp4',
      'caf%C3%A9.mp4',
      '100%.mp4',
      './c.mp4',
      '/a/talk/d.mp4',
      'http://host/a/talk/e.mp4',
      'f&amp;g.mp4',
    ];
    assert.deepEqual(
      listed(page(links.map((href) => `<A class=x HREF='${href}' title="x">y</A>`).join(' | ')))?.map(([name]) => name),
      ['a b.mp4', 'café.mp4', '100%.mp4', 'c.mp4', 'd.mp4', 'e.mp4', 'f&g.mp4'],
    );
  });

  test('names nothing by a link with a query or a fragment, be it empty', () => {
    assert.deepEqual(listed(page('<a href="?"><a href="a?"><a href="a#"><a href="?C=N">')), []);
  });

  test('holds what lies right inside the folder, and nothing else, whatever it says', () => {
    const text = fc.oneof(
      fc.string(),
      fc.string({ unit: 'binary' }),
      fc
        .array(fc.constantFrom('<a href="', '">', '../', '/', '%2e%2e', 'a', '?', '#', '&#46;', '"', '<', '>', '\\'), {
          maxLength: 30,
        })
        .map((parts) => parts.join('')),
    );
    fc.assert(
      fc.property(text, (body) => {
        for (const { url } of readDirectoryIndex(page(body), 'text/html', FOLDER) ?? []) {
          assert.match(url.href, /^http:\/\/host\/a\/talk\/[^/?#]+\/?$/);
        }
        readDirectoryIndex(body, 'application/json', FOLDER);
      }),
    );
  });

  test('is read in linear time, however it is made', () => {
    for (const piece of ['<a ', '<a href=', '<a href="', '<a href=\'"', '<a href="x">', '&#', ' href = ', '<']) {
      assert.ok(readDirectoryIndex(page(piece.repeat(200_000)), 'text/html', FOLDER) !== null);
    }
  });
});
