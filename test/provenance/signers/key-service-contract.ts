import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { DeviceSigner } from '#provenance/identity/signers/open-signer.ts';
import { assertValid } from '../../support/judges/file-judges.ts';
import { signWav, testAuthor } from '../../support/manifests/sign-wav.ts';
import { failure, type KeyService, type ServiceAnswer } from './key-service.ts';

/** The differences between the services of a kind. */
interface Kind {
  readonly service: KeyService;
  /** Opens a signer with ES256. */
  open(timeoutMs?: number): Promise<DeviceSigner>;
  /** The answers of the service in its own form. */
  readonly busy: ServiceAnswer;
  readonly refused: ServiceAnswer;
  readonly missing: ServiceAnswer;
  /** The answer with a signature of something else. */
  readonly foreign: ServiceAnswer;
  readonly secrets: readonly string[];
}

const DATA = Buffer.from('a claim');

/** The obligations of a signer whose key is behind a network. */
export function keyServiceContract(name: string, kind: Kind): void {
  const { service, open, secrets } = kind;

  describe(`${name}, when the service`, () => {
    test('signs, both official readers call the manifests valid', async () => {
      const { bytes } = await signWav(testAuthor({ signer: await open() }));
      await assertValid(bytes, 'audio/wav');
    });

    for (const [event, fault] of [
      ['is busy', kind.busy],
      ['has an internal error', { status: 500, body: 'a stack trace' }],
      ['drops the connection', 'drop'],
    ] as const) {
      test(`${event}, asks again`, async () => {
        const signer = await open();
        service.faults.push(fault, fault);
        await signer.sign(DATA);
        assert.deepEqual(service.faults, []);
      });
    }

    for (const [event, fault, reason] of [
      ['refuses the credential', kind.refused, 'SIGNER_ACCESS_REFUSED'],
      ['has no such key', kind.missing, 'SIGNER_KEY_MISSING'],
      ['answers with the signature of something else', kind.foreign, 'SIGNER_KEY_MISMATCH'],
      ['answers with something else', { status: 200, body: 'Welcome!' }, 'SIGNER_AWAY'],
      ['answers too late', 'hang', 'SIGNER_AWAY'],
    ] as const) {
      test(`${event}, ends with ${reason}`, async () => {
        const signer = await open(1_000);
        service.faults.push(...Array.from({ length: 8 }, () => fault));
        await assert.rejects(signer.sign(DATA), failure(reason, secrets));
        service.faults.length = 0;
        await signer.sign(DATA);
      });
    }

    test('asks to go elsewhere, does not go there', async () => {
      const signer = await open();
      const before = service.requests.length;
      service.faults.push({ status: 307, body: '', headers: { location: `${service.url}/elsewhere` } });
      await assert.rejects(signer.sign(DATA), failure('SIGNER_AWAY', secrets));
      assert.equal(service.requests.length, before + 1);
    });
  });
}
