import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isLoopback, parseBindAddress } from '#config/addresses.ts';

describe('parseBindAddress', () => {
  for (const [value, host, port, loopback] of [
    ['0.0.0.0:8080', '0.0.0.0', 8080, false],
    ['127.0.0.1:0', '127.0.0.1', 0, true],
    ['localhost:65535', 'localhost', 65535, true],
    ['[::1]:80', '::1', 80, true],
    ['[::]:80', '::', 80, false],
    ['media.example.com:80', 'media.example.com', 80, false],
  ] as const) {
    test(`reads ${value}`, () => {
      const address = parseBindAddress(value);
      assert.deepEqual(address, { host, port });
      assert.equal(isLoopback(host), loopback);
    });
  }

  for (const value of [
    '',
    ':80',
    'host',
    'host:',
    'host:x',
    'host:65536',
    '::1:80',
    '[::1]',
    'a b:80',
    'http://host:80',
  ]) {
    test(`refuses "${value}"`, () => {
      assert.equal(parseBindAddress(value), null);
    });
  }
});
