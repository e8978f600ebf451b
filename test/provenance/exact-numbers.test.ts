import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { exactNumbers, isSameData } from '#provenance/authoring/sdk-json.ts';
import { signWav, testAuthor } from '../support/manifests/sign-wav.ts';

const author = testAuthor();

/** The JSON that a manifest stores for data, taken from its bytes: the reader would change it once more. */
async function storedJson(data: object): Promise<string> {
  const { manifest } = await signWav(author, { assertions: [{ label: 'com.example.data', data: { data } }] });
  const bytes = Buffer.from(manifest);
  const label = bytes.indexOf('com.example.data\0');
  const box = bytes.indexOf('json{', label, 'latin1');
  return bytes.toString('utf8', box + 4, box - 4 + bytes.readUInt32BE(box - 4));
}

async function storedNumbers(numbers: readonly number[]): Promise<number[]> {
  return JSON.parse(await storedJson(numbers)).data;
}

describe('the numbers of an assertion', () => {
  test('come out of the manifest as they went in, where they have up to 15 digits', async () => {
    const decimals = fc.tuple(
      fc.integer({ min: -999_999_999_999_999, max: 999_999_999_999_999 }),
      fc.integer({ min: -22, max: 22 }),
    );
    const numbers = fc.sample(decimals, 5000).map(([digits, exponent]) => Number(`${digits}e${exponent}`));
    assert.deepEqual(
      await storedNumbers(numbers),
      numbers.map((number) => (Object.is(number, -0) ? -0 : number)),
    );
  });

  test('come out as they went in at the ends of what a double can be', async () => {
    const numbers = [
      ...[0, -0, 5e-324, Number.MAX_VALUE, -Number.MAX_VALUE, 2.2250738585072014e-308, 1e21, 1e22, 1e23, 0.1, 1e-7],
      ...[
        0.30000000000000004,
        2 ** 53,
        2 ** 53 + 2,
        2 ** 60,
        2 ** 63,
        -(2 ** 63),
        2 ** 64,
        -(2 ** 64),
        123456789012345680000,
      ],
    ];
    const stored = await storedNumbers(numbers);
    assert.deepEqual(
      stored.map((number, index) => Object.is(number, numbers[index])),
      numbers.map(() => true),
    );
  });

  test('are off by at most one unit in the last place, and by none in nearly all cases', async () => {
    const numbers = fc.sample(fc.double({ noNaN: true, noDefaultInfinity: true }), { numRuns: 20_000, seed: 1 });
    const stored = await storedNumbers(numbers);
    const wrong = numbers.filter((number, index) => number !== stored[index]);
    assert(wrong.length < numbers.length / 200, `${wrong.length} of ${numbers.length}`);
    for (const [index, number] of numbers.entries()) {
      const off = Math.abs((stored[index] ?? 0) - number);
      assert(off <= Math.max(Math.abs(number) * 2 ** -52, Number.MIN_VALUE));
    }
  });
});

describe('the rest of an assertion', () => {
  test('is stored as it was given, its keys in their order', async () => {
    const data = { zebra: 1, apple: [1, 'ü€😀', null, true, [[]], {}], ['__proto__x']: { b: 1, a: 2 } };
    assert.equal(await storedJson(data), JSON.stringify({ data }));
  });

  test('is left alone by the writing of numbers, whatever it is', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        assert(isSameData(value, JSON.parse(JSON.stringify(exactNumbers(value)))));
      }),
    );
  });
});
