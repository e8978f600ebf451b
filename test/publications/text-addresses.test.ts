import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addressesIn } from '#publications/presentation/text-addresses.ts';

function addresses(text: string): readonly string[] {
  return addressesIn(Buffer.from(text));
}

test('a text names the pictures and files of its attributes, under any prefix, each once', () => {
  const text = `\ufeff <tt><div smpte:backgroundImage = "a.png"/><image xlink:href='b.png'/><image
src="https://example.com/c.png"/><image src="b.png"/><p backgroundImage="\nd.png"/></tt>`;
  assert.deepEqual(addresses(text), ['a.png', 'b.png', 'https://example.com/c.png', 'd.png']);
});

test('a text that players read, and parsers refuse, names them too', () => {
  for (const text of [
    '<tt><div smpte:backgroundImage="a.png"></tt>',
    '<!DOCTYPE tt><tt><image src="a.png">',
    `${'\n'.repeat(100)}<tt><image src="a.png">`,
  ]) {
    assert.deepEqual(addresses(text), ['a.png']);
  }
});

test('a text names nothing outside itself by what lies in it', () => {
  const text =
    '<tt xmlns="http://www.w3.org/ns/ttml" ttp:profile="http://www.w3.org/ns/ttml/profile/imsc1/image"><div backgroundImage="#a"/><image src="data:image/png;base64,AA=="/><image href=" "/><p nosrc="a.png">src="</p></tt>';
  assert.deepEqual(addresses(text), []);
});

test('other files name nothing', () => {
  for (const text of ['WEBVTT\n\n<i src="a.png">', 'src="a.png"', '', '\x89PNG src="a.png"']) {
    assert.deepEqual(addresses(text), [], text);
  }
});
