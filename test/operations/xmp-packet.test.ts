import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Builder, Reader } from '@contentauth/c2pa-node';
import { instanceIdIn, namesRemoteManifest } from '#operations/describe-ingredient.ts';
import type { IngredientSource } from '#provenance/manifest-request.ts';
import { checkOutput } from '#provenance/official-reader.ts';
import { type FileWithXmp, filesWithXmp, xmpNaming } from '../provenance/files-with-xmp.ts';
import { assertValid } from '../support/judges/file-judges.ts';
import { signWav, testAuthor } from '../support/manifests/sign-wav.ts';

const { signal } = new AbortController();
const XMP_MM = 'xmlns:xmpMM="http://ns.adobe.com/xap/1.0/mm/"';

describe('a file whose XMP names a remote manifest', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'remote-'));
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(request.url ?? '');
    response.writeHead(404).end();
  });
  let files: FileWithXmp[];
  let wav: FileWithXmp;

  before(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/manifest.c2pa`;
    files = filesWithXmp(xmpNaming(url));
    wav = files.find(({ mediaType }) => mediaType === 'audio/wav') as FileWithXmp;
    for (const { name, bytes } of files) writeFileSync(path.join(folder, name), bytes);
  });
  after(() => {
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const ingredientFrom = ({ name, mediaType }: FileWithXmp, manifest: boolean): IngredientSource =>
    manifest
      ? { kind: 'file', path: path.join(folder, name), title: name, mediaType }
      : { kind: 'plain', title: name, mediaType };

  test('would make the SDK send a request, if it were let', async () => {
    for (const { bytes, mediaType } of files) {
      await Reader.fromAsset({ buffer: bytes, mimeType: mediaType }).catch(() => null);
      assert.deepEqual(requests.splice(0), ['/manifest.c2pa']);
    }
  });

  test('makes no request as a source that is signed and read back', async () => {
    const { bytes } = await signWav(testAuthor(), { origin: ingredientFrom(wav, false) }, wav.bytes);
    const output = path.join(folder, 'output.wav');
    writeFileSync(output, bytes);
    await checkOutput({ path: output, mediaType: 'audio/wav' }, signal);
    assert.deepEqual(requests, []);
  });

  test('makes no request as an output that lost its manifest', async () => {
    for (const { name, mediaType } of files) {
      const reading = checkOutput({ path: path.join(folder, name), mediaType }, signal);
      await assert.rejects(reading, { reason: 'READ_BACK_FAILED' });
    }
    assert.deepEqual(requests, []);
  });

  test('makes no request as parent or component, and is attached with a warning', async () => {
    for (const file of files) {
      const ingredient = ingredientFrom(file, true);
      const { bytes, warnings } = await signWav(testAuthor(), { origin: ingredient, components: [ingredient] });
      await assertValid(bytes, 'audio/wav');
      assert.equal(warnings.length, 2);
    }
    assert.deepEqual(requests, []);
  });
});

describe('an XMP packet', () => {
  const naming = [
    xmpNaming('https://cloud.example/x.c2pa'),
    "<rdf:Description dcterms:provenance='https://cloud.example/x'/>",
    '<rdf:Description\n  dc:provenance = "https://cloud.example/x" />',
    '<dcterms:provenance>https://cloud.example/x</dcterms:provenance>',
    '<terms:provenance rdf:resource="https://cloud.example/x"/>',
  ];
  for (const [index, packet] of naming.entries()) {
    test(`names a remote manifest, spelling ${index + 1}`, () => assert(namesRemoteManifest(packet)));
  }

  const silent = ['', '<rdf:Description dcterms:provenance=""/>', '<dc:title>provenance</dc:title>', 'provenance="x"'];
  for (const [index, packet] of silent.entries()) {
    test(`names none, case ${index + 1}`, () => assert(!namesRemoteManifest(packet)));
  }

  const reference = '<xmpMM:DerivedFrom stRef:instanceID="xmp.iid:other"/>';
  for (const [spelling, identified] of Object.entries({
    'an attribute': `<rdf:Description ${XMP_MM} xmpMM:InstanceID="xmp.iid:4711" xmpMM:DocumentID="xmp.did:1"/>`,
    'an attribute in single quotes': `<rdf:Description ${XMP_MM} xmpMM:InstanceID = 'xmp.iid:4711'/>`,
    'an element': `<rdf:Description ${XMP_MM}><xmpMM:InstanceID>xmp.iid:4711</xmpMM:InstanceID></rdf:Description>`,
    'an attribute beside a reference': `<rdf:Description ${XMP_MM} xmpMM:InstanceID="xmp.iid:4711">${reference}</rdf:Description>`,
  })) {
    test(`identifies its file by ${spelling}, as the SDK reads it`, async () => {
      const packet = xmpNaming('').replace('</rdf:RDF>', `${identified}</rdf:RDF>`);
      assert.equal(instanceIdIn(packet), await instanceIdToSdk(packet));
      assert.equal(instanceIdIn(packet), 'xmp.iid:4711');
    });
  }

  for (const unusable of [
    '',
    reference,
    'x:InstanceID=""',
    ` x:InstanceID="a\u0007"`,
    ` x:InstanceID="${'x'.repeat(256)}"`,
  ]) {
    test(`identifies no file by ${JSON.stringify(unusable.slice(0, 40))}`, () =>
      assert.equal(instanceIdIn(unusable), null));
  }

  test('is looked through in time that grows with its size only', () => {
    assert(!namesRemoteManifest(`<${'a:'.repeat(200_000)}`));
    assert(!namesRemoteManifest(' a'.repeat(200_000)));
    assert(!namesRemoteManifest(` ${'a'.repeat(400_000)}`));
    for (const part of [
      ' a',
      ' a:InstanceID',
      ' a:InstanceID="',
      '<a:InstanceID ',
      '<a:InstanceID>',
      ' a:InstanceID=\n',
    ]) {
      instanceIdIn(part.repeat(200_000));
    }
  });
});

/** Returns the identifier that the SDK reads from a file with an XMP packet. */
async function instanceIdToSdk(packet: string): Promise<string | undefined> {
  const [file] = filesWithXmp(packet) as [FileWithXmp];
  const builder = Builder.withJson({ claim_generator_info: [], assertions: [] } as never);
  await builder.addIngredient('{"title":"x"}', { buffer: file.bytes, mimeType: file.mediaType });
  return (builder.getManifestDefinition().ingredients?.[0] as { instance_id?: string } | undefined)?.instance_id;
}
