import assert from 'node:assert/strict';
import { test } from 'node:test';
import { algorithmName } from '#provenance/algorithm-name.ts';

test('a signature algorithm has its standard name, whoever spells it', () => {
  for (const [spelled, name] of [
    ['es256', 'ES256'],
    ['Es512', 'ES512'],
    ['Ps384', 'PS384'],
    ['ed25519', 'Ed25519'],
    ['Ed25519', 'Ed25519'],
  ] as const) {
    assert.equal(algorithmName(spelled), name);
  }
});
