import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { c2paParams } from '#contract/signing.ts';
import { AppError } from '#errors/app-error.ts';
import { requireFitAssertions } from '#provenance/dry-run/assertion-rules.ts';
import type { CustomAssertion } from '#provenance/manifest-request.ts';

/** The reason and the field of the refusal; null where there is none. */
function refusalOf(assertions: readonly CustomAssertion[]): string | null {
  try {
    requireFitAssertions(assertions);
    return null;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    assert.equal(error.code, 'VALIDATION_FAILED');
    return `${error.reason} at ${error.location.field}`;
  }
}

function nested(depth: number): unknown {
  let data: unknown = 'bottom';
  for (let level = 0; level < depth; level += 1) data = level % 2 === 0 ? [data] : { data };
  return data;
}

describe('assertion labels', () => {
  const fit = [
    'com.example.review',
    'A-1_b.c',
    'c2pa-x.hash',
    '1.2',
    'x.v',
    'a.v1.b',
    'stds.exif',
    `${'x'.repeat(253)}.y`,
  ];
  for (const label of fit) {
    test(`may be ${label.slice(0, 30)}`, () => assert.equal(refusalOf([{ label, data: null }]), null));
  }

  const unfit = [
    ...['a', 'x', 'c2pa', '.x', 'x.', 'com..x', '-a.b', 'a.-b', '_a.b', 'a._b', 'com.example.'],
    ...['', 'a b.c', 'a/b.c', 'a.b=c', 'a\0b.c', 'ä.b', 'a.b\n', 'a:b.c', `x.${'y'.repeat(254)}`],
    ...['x.v1', 'x.v2', 'x.v001', 'x.y__1', 'x.y__1.z', 'c2pa.metadata.v2', 'c2pa.metadata__1'],
    // Statements of the service itself, or those that need a key.
    ...['c2pa.hash.data', 'c2pa.hash.x', 'c2pa.actions', 'c2pa.ingredient', 'c2pa.claim', 'c2pa.signature'],
    ...['c2pa.time-stamp', 'c2pa.thumbnail.claim', 'c2pa.assertion.metadata', 'c2pa.certificate-status'],
    ...['cawg.identity', 'c2pa.session-keys', 'c2pa.cloud-data', 'c2pa.external-reference', 'c2pa.embedded-data'],
    ...['c2pa.unknown', 'cawg.unknown', 'c2pa.metadata.more'],
    ...['C2PA.hash.data', 'c2pa.Metadata', 'C2pa.metadata', 'CAWG.identity', 'Cawg.Metadata'],
  ];
  for (const label of unfit) {
    test(`may not be ${JSON.stringify(label.slice(0, 30))}`, () => {
      const fitting = { label: 'com.example.fit', data: 1 };
      const refusal = refusalOf([fitting, { label, data: 1 }]);
      assert.equal(refusal, 'ASSERTION_LABEL_REFUSED at params.assertions[1].label');
    });
  }

  test('may not be there twice', () => {
    const twice = [
      { label: 'a.b', data: 1 },
      { label: 'a.c', data: 1 },
      { label: 'a.b', data: 2 },
    ];
    assert.equal(refusalOf(twice), 'ASSERTION_LABEL_REFUSED at params.assertions[2].label');
  });

  test('are shown shortened', () => {
    assert.throws(
      () => requireFitAssertions([{ label: 'x'.repeat(1e6), data: 1 }]),
      ({ message }: Error) => message.length < 500,
    );
  });
});

describe('the content of a standard assertion', () => {
  const context = { '@context': { exif: 'http://ns.adobe.com/exif/1.0/' } };
  const entries = { 'cawg.ai_training': { use: 'constrained', constraint_info: 'https://example.com/terms' } };
  const block = { scope: { timespan: { start: 0, end: 5 } }, value: [1, 2, 255] };
  const sound: readonly CustomAssertion[] = [
    { label: 'c2pa.metadata', data: context },
    { label: 'cawg.metadata', data: context },
    { label: 'c2pa.training-mining', data: { entries: { 'c2pa.ai_training': { use: 'notAllowed' } } } },
    { label: 'cawg.training-mining', data: { entries } },
    { label: 'c2pa.soft-binding', data: { alg: 'com.example.watermark.1', blocks: [block] } },
    { label: 'c2pa.asset-ref', data: { references: [{ reference: { uri: 'https://example.com/film.mp4' } }] } },
  ];
  for (const assertion of sound) {
    test(`may be ${JSON.stringify(assertion)}`, () => assert.equal(refusalOf([assertion]), null));
  }

  const malformed: readonly CustomAssertion[] = [
    ...sound.flatMap(({ label }) => [null, 5, 'text', [], {}].map((data) => ({ label, data }))),
    { label: 'c2pa.training-mining', data: { entries: {} } },
    { label: 'cawg.training-mining', data: { entries: { 'cawg.ai_training': { use: 'maybe' } } } },
    { label: 'cawg.training-mining', data: { entries: { 'cawg.ai_training': 'notAllowed' } } },
    { label: 'c2pa.soft-binding', data: { alg: 7, blocks: [block] } },
    { label: 'c2pa.soft-binding', data: { alg: 'com.example.watermark.1', blocks: [] } },
    { label: 'c2pa.soft-binding', data: { alg: 'com.example.watermark.1', blocks: [{ scope: 3, value: 'x' }] } },
    { label: 'c2pa.soft-binding', data: { alg: 'com.example.watermark.1', blocks: [{ scope: {}, value: [256] }] } },
    { label: 'c2pa.asset-ref', data: { references: [{ reference: { uri: 'not a uri' } }] } },
  ];
  for (const assertion of malformed) {
    test(`may not be ${JSON.stringify(assertion)}`, () => {
      assert.equal(refusalOf([assertion]), 'ASSERTION_DATA_REFUSED at params.assertions[0].data');
    });
  }
});

describe('assertion data', () => {
  test('may be any JSON value', () => {
    fc.assert(fc.property(fc.jsonValue({ maxDepth: 20 }), (data) => refusalOf([{ label: 'a.b', data }]) === null));
  });

  test('may hold a hundred thousand values in all, and no more', () => {
    const half = new Array(49_999).fill(0);
    const two = [
      { label: 'a.b', data: half },
      { label: 'a.c', data: half },
    ];
    assert.equal(refusalOf(two), null);
    const refusal = 'ASSERTION_DATA_REFUSED at params.assertions[2].data';
    assert.equal(refusalOf([...two, { label: 'a.d', data: null }]), refusal);
  });

  test('may come with 2,000 labels, and no more', () => {
    const many = Array.from({ length: 2001 }, (_, index) => ({ label: `a.b${index}`, data: 1 }));
    assert.equal(refusalOf(many.slice(1)), null);
    assert.equal(refusalOf(many), 'ASSERTIONS_REFUSED at params.assertions');
    assert.equal(c2paParams.safeParse({ assertions: many.slice(1) }).success, true);
    assert.equal(c2paParams.safeParse({ assertions: many }).success, false);
  });

  test('may have 8 MiB of JSON in all, and no more', () => {
    const half = { label: 'a.b', data: 'é'.repeat(2 * 1024 * 1024 - 1) };
    assert.equal(refusalOf([half, { ...half, label: 'a.c' }]), null);
    const refusal = 'ASSERTIONS_REFUSED at params.assertions';
    assert.equal(refusalOf([half, { ...half, label: 'a.c' }, { label: 'a.d', data: 1 }]), refusal);
  });

  test('may hold no half of a surrogate pair, in a text or in a key; the refusal says where', () => {
    for (const [data, path] of [
      ['\ud800', 'data'],
      [{ notes: ['fine 😀', { by: 'x\udc00' }] }, 'data.notes[1].by'],
      [{ notes: [{ '\udc00': 1 }] }, 'data.notes[0]'],
    ] as const) {
      const assertions = [{ label: 'a.b', data }];
      assert.equal(refusalOf(assertions), 'ASSERTION_DATA_REFUSED at params.assertions[0].data');
      assert.throws(
        () => requireFitAssertions(assertions),
        ({ details }: AppError) => (details as { problem: string }).problem.includes(`${path} `),
      );
    }
  });

  test('may be 100 levels deep, and no deeper', () => {
    assert.equal(refusalOf([{ label: 'a.b', data: nested(100) }]), null);
    const refusal = 'ASSERTION_DATA_REFUSED at params.assertions[0].data';
    for (const depth of [101, 1000, 100_000]) assert.equal(refusalOf([{ label: 'a.b', data: nested(depth) }]), refusal);
  });
});
