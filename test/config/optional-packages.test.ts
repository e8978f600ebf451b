import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isInRange, optionalPackages } from '#config/optional-packages.ts';

describe('the version of an optional package', () => {
  for (const [version, range, expected] of [
    ['8.23.1', '^8.23.1', true],
    ['8.24.0', '^8.23.1', true],
    ['8.23.0', '^8.23.1', false],
    ['8.9.9', '^8.23.1', false],
    ['9.0.0', '^8.23.1', false],
    ['0.301.4', '^0.301.0', true],
    ['0.302.0', '^0.301.0', false],
    ['1.0.0', '^0.301.0', false],
  ] as const) {
    test(`${version} is ${expected ? '' : 'not '}one of ${range}`, () =>
      assert.equal(isInRange(version, range), expected));
  }

  test('has a range of that form for each of them', () => {
    for (const [name, range] of Object.entries(optionalPackages())) assert.match(range, /^\^\d+\.\d+\.\d+$/, name);
  });
});
