import assert from 'node:assert/strict';
import { createPublicKey, generateKeyPairSync, type KeyObject, sign, X509Certificate } from 'node:crypto';
import { describe, test } from 'node:test';
import {
  BasicOCSPResponse,
  CertStatus,
  id_pkix_ocsp_basic,
  KeyHash,
  OCSPResponse,
  ResponderID,
  ResponseBytes,
  ResponseData,
  RevokedInfo,
  SingleResponse,
} from '@peculiar/asn1-ocsp';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import { AlgorithmIdentifier, Certificate } from '@peculiar/asn1-x509';
import { EXTENDED_KEY_USAGE } from '#provenance/identity/certificate-profile.ts';
import { type CertificateContents, type Issuer, issueCertificate, KEY_USAGE } from '#provenance/identity/x509.ts';
import { judgeResponse } from '#provenance/revocation/judge-response.ts';
import { identifierFor } from '#provenance/revocation/ocsp-messages.ts';

// Responses that `openssl ocsp` does not make.

const DAY_MS = 24 * 60 * 60_000;
// OCSP tells times in seconds.
const now = Math.floor(Date.now() / 1000) * 1000;
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

const SHA_1 = '1.3.14.3.2.26';
const SHA_256 = '2.16.840.1.101.3.4.2.1';
const ECDSA_WITH_SHA_256 = '1.2.840.10045.4.3.2';

function statusOf({ hash = SHA_1, about = certificate, revokedAt, ...period }: Status): SingleResponse {
  const { thisUpdate = daysFromNow(-1), nextUpdate = daysFromNow(1) } = period;
  const revoked = revokedAt && new RevokedInfo({ revocationTime: revokedAt });
  return new SingleResponse({
    certID: identifierFor(about)(hash),
    certStatus: new CertStatus(revoked === undefined ? { good: null } : { revoked }),
    thisUpdate,
    ...(nextUpdate !== null && { nextUpdate }),
  });
}

/** Returns a response, and `by` whom it is signed, with the certificates that are `sent` along. */
function respond(statuses: readonly Status[], by: Holder, producedAt = daysFromNow(-1), sent = [by]): Buffer {
  const responderID = new ResponderID({ byKey: new KeyHash(new Uint8Array(20)) });
  const tbsResponseData = new ResponseData({ responderID, producedAt, responses: statuses.map(statusOf) });
  const signature = sign('sha256', Buffer.from(AsnConvert.serialize(tbsResponseData)), by.privateKey);
  const basic = new BasicOCSPResponse({
    tbsResponseData,
    signatureAlgorithm: new AlgorithmIdentifier({ algorithm: ECDSA_WITH_SHA_256 }),
    signature: new Uint8Array(signature).buffer,
    certs: sent.map((holder) => AsnConvert.parse(holder.certificate.raw, Certificate)),
  });
  const response = new OctetString(AsnConvert.serialize(basic));
  const responseBytes = new ResponseBytes({ responseType: id_pkix_ocsp_basic, response });
  return Buffer.from(AsnConvert.serialize(new OCSPResponse({ responseBytes })));
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
    const statuses = [{}, { revokedAt: daysFromNow(-10), hash: SHA_256 }];
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
