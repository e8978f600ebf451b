import assert from 'node:assert/strict';
import { createPublicKey, generateKeyPairSync, type KeyObject, sign, X509Certificate } from 'node:crypto';
import { describe, test } from 'node:test';
import { EXTENDED_KEY_USAGE } from '#provenance/identity/certificate-profile.ts';
import { type CertificateContents, type Issuer, issueCertificate, KEY_USAGE } from '#provenance/identity/x509.ts';
import { certificateIdFields, HASHES } from '#provenance/revocation/certificate-id.ts';
import { encodeElement, TAG } from '#provenance/revocation/der.ts';
import { judgeResponse } from '#provenance/revocation/judge-response.ts';

// Responses that `openssl ocsp` does not make.

const DAY_MS = 24 * 60 * 60_000;
const now = Date.now();
const daysFromNow = (days: number): Date => new Date(now + days * DAY_MS);

async function issued(
  name: string,
  issuer: Holder | null,
  contents: Partial<CertificateContents> = {},
): Promise<Holder> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const period = { notBefore: daysFromNow(-400), notAfter: daysFromNow(60) };
  const own: Issuer = { commonName: name, privateKey };
  const publicKey = createPublicKey(privateKey);
  const der = await issueCertificate({ ...own, publicKey, ...period, ...contents }, issuer?.own ?? own);
  return { own, privateKey, certificate: new X509Certificate(der) };
}

interface Holder {
  readonly own: Issuer;
  readonly privateKey: KeyObject;
  readonly certificate: X509Certificate;
}

const AUTHORITY = { isCa: true, keyUsage: KEY_USAGE.keyCertSign };
const RESPONDER = { extendedKeyUsages: [EXTENDED_KEY_USAGE.ocspSigning], keyUsage: KEY_USAGE.digitalSignature };
const authority = await issued('authority', null, AUTHORITY);
const [leaf, responder] = await Promise.all([issued('leaf', authority), issued('responder', authority, RESPONDER)]);
const certificate = { leaf: leaf.certificate, issuer: authority.certificate };

interface Status {
  readonly hash?: string;
  readonly about?: typeof certificate;
  readonly revokedAt?: Date;
  readonly thisUpdate?: Date;
  readonly nextUpdate?: Date | null;
}

const sequence = (...parts: Uint8Array[]): Buffer => encodeElement(TAG.sequence, ...parts);
const time = (date: Date): Buffer => {
  const digits = date.toISOString().replaceAll(/[-:T]|\.\d+/g, '');
  return encodeElement(0x18, Buffer.from(digits));
};

function statusOf({ hash = 'sha1', about = certificate, revokedAt, ...period }: Status): Buffer {
  const { thisUpdate = daysFromNow(-1), nextUpdate = daysFromNow(1) } = period;
  const [oid = ''] = Object.entries(HASHES).find(([, name]) => name === hash) ?? [];
  return sequence(
    sequence(sequence(Buffer.from(oid, 'hex'), encodeElement(TAG.null)), certificateIdFields(about, hash)),
    revokedAt === undefined ? encodeElement(0x80) : encodeElement(0xa1, time(revokedAt)),
    time(thisUpdate),
    ...(nextUpdate === null ? [] : [encodeElement(0xa0, time(nextUpdate))]),
  );
}

/** Returns a response, and `by` whom it is signed, with the certificates that are `sent` along. */
function respond(statuses: readonly Status[], by: Holder, producedAt = daysFromNow(-1), sent = [by]): Buffer {
  const signed = sequence(
    encodeElement(0xa2, encodeElement(TAG.octets, Buffer.alloc(20))),
    time(producedAt),
    sequence(...statuses.map(statusOf)),
  );
  const basic = sequence(
    signed,
    sequence(Buffer.from('06082a8648ce3d040302', 'hex')),
    encodeElement(0x03, Buffer.alloc(1), sign('sha256', signed, by.privateKey)),
    encodeElement(0xa0, sequence(...sent.map((holder) => holder.certificate.raw))),
  );
  const typed = sequence(Buffer.from('06092b0601050507300101', 'hex'), encodeElement(TAG.octets, basic));
  return sequence(encodeElement(TAG.enumerated, Buffer.alloc(1)), encodeElement(0xa0, typed));
}

function judged(response: Buffer, at = new Date()): string {
  return judgeResponse(response, certificate, at).status;
}

describe('an OCSP response', () => {
  test('by the issuer or its responder is believed', () => {
    for (const by of [authority, responder]) assert.equal(judged(respond([{}], by)), 'good');
  });

  test('that names no end is good for a day', () => {
    const old = respond([{ thisUpdate: daysFromNow(-2), nextUpdate: null }], responder);
    assert.equal(judged(old), 'none');
    assert.equal(judged(old, daysFromNow(-1.5)), 'good');
    assert.equal(judged(old, daysFromNow(-3)), 'good');
    assert.equal(judged(respond([{ thisUpdate: daysFromNow(-0.5), nextUpdate: null }], responder)), 'good');
  });

  test('that says both good and revoked says revoked, in whatever order', () => {
    const statuses = [{}, { revokedAt: daysFromNow(-10), hash: 'sha256' }];
    const many = [...Array<Status>(20).fill({}), ...statuses];
    for (const each of [statuses, statuses.toReversed(), many]) {
      assert.equal(judged(respond(each, authority)), 'revoked');
    }
  });

  test('by a responder whose certificate had ended when it was said counts as none', async () => {
    const period = { notBefore: daysFromNow(-300), notAfter: daysFromNow(-200) };
    const ended = await issued('responder', authority, { ...RESPONDER, ...period });
    assert.equal(judged(respond([{}], ended)), 'none');
    assert.equal(judged(respond([{}], ended, daysFromNow(-250))), 'none', 'it states when it was made itself');
    const early = { thisUpdate: daysFromNow(-250), nextUpdate: daysFromNow(1) };
    assert.equal(judged(respond([early], ended, daysFromNow(-250))), 'none');
    assert.equal(judged(respond([early], ended, daysFromNow(-250)), daysFromNow(-240)), 'good');
  });

  test('by whom the issuer did not appoint itself counts as none', async () => {
    const other = await issued('authority', null, AUTHORITY);
    const under = await issued('under', authority, AUTHORITY);
    const [nested, stranger, below, sibling] = await Promise.all([
      issued('nested', responder, RESPONDER),
      issued('responder', other, RESPONDER),
      issued('below', under, RESPONDER),
      issued('sibling', authority, { ...RESPONDER, extendedKeyUsages: [EXTENDED_KEY_USAGE.timeStamping] }),
    ]);
    for (const by of [nested, stranger, below, sibling, leaf, other]) {
      assert.equal(
        judged(respond([{}], by, daysFromNow(-1), [by, responder, under, other])),
        'none',
        by.own.commonName,
      );
    }
  });

  test('about another number, or about a certificate of another key of the same name counts as none', async () => {
    const other = await issued('authority', null, AUTHORITY);
    const ofOther = { leaf: leaf.certificate, issuer: other.certificate };
    const ofSibling = { leaf: responder.certificate, issuer: authority.certificate };
    for (const about of [ofOther, ofSibling]) assert.equal(judged(respond([{ about }], authority)), 'none');
  });
});
