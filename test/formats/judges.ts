import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { after } from 'node:test';
import { Builder, LocalSigner, Reader } from '@contentauth/c2pa-node';
import { executePlan, fillHole } from '#bytes/execute-plan.ts';
import { outputSizeBytes } from '#bytes/splice-plan.ts';
import type { FormatHandler, HardBinding, MediaLayout } from '#formats/format-handler.ts';
import { memorySink, memorySource } from './memory-bytes.ts';

/** A folder for the media of a test file, removed when its tests are done. */
export function mediaFolder(): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'formats-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Runs a media tool in a folder and returns what it wrote to its standard output. */
export function run(folder: string, tool: string, ...args: string[]): Buffer {
  return execFileSync(tool, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 64 * 1024 * 1024 });
}

/** MD5 of the decoded audio, as ffmpeg hears it. */
export function decodedMd5(folder: string, bytes: Uint8Array, extension: string): string {
  const name = `decoded-${Math.random().toString(36).slice(2)}.${extension}`;
  writeFileSync(path.join(folder, name), bytes);
  const args = ['-v', 'error', '-i', name, '-map', '0:a', '-f', 'md5', '-'];
  return run(folder, 'ffmpeg', ...args)
    .toString('utf8')
    .trim();
}

const settings = { verify: { verify_after_sign: false, verify_after_reading: false } };
/** Room for what the real reserve is larger than: the rest of the hole is zeros. */
const SLACK_BYTES = 101;

/** Signs a file as the service does it: layout, plan, one pass, official SDK, hole. */
export async function signBytes<Layout extends MediaLayout>(
  format: FormatHandler<Layout>,
  input: Uint8Array,
  { name = 'input.bin', slackBytes = SLACK_BYTES }: { name?: string; slackBytes?: number } = {},
): Promise<Buffer> {
  const { signal } = new AbortController();
  const source = memorySource(input, name);
  const layout = await format.readLayout(source, signal);
  const placeholder = format.placeholderBinding(layout);
  const reserveBytes = (await makeManifest(placeholder)).length + slackBytes;
  const { plan, binding } = format.planEmbedding(layout, reserveBytes);
  const sink = memorySink(outputSizeBytes(plan));
  const digests = await executePlan(plan, source, sink, { signal });
  await fillHole(plan, sink, await makeManifest(binding(digests)), signal);
  return sink.bytes;
}

/** Asserts that both official readers find exactly one valid manifest; only trust in its certificate is missing. */
export async function assertValid(bytes: Uint8Array, mediaType: string): Promise<void> {
  for (const report of [await readNatively(bytes, mediaType), await readInWasm(bytes, mediaType)]) {
    const problems = report.statuses.filter((code) => code !== 'signingCredential.untrusted');
    assert.deepEqual({ state: report.state, problems }, { state: 'Valid', problems: [] });
  }
}

interface Report {
  readonly state: string;
  readonly statuses: readonly string[];
}

export async function readNatively(bytes: Uint8Array, mimeType: string): Promise<Report> {
  const reader = await Reader.fromAsset(
    { buffer: Buffer.from(bytes), mimeType },
    { verify: { remote_manifest_fetch: false } },
  );
  assert(reader !== null, 'the native reader finds a manifest');
  return reportOf(reader.json());
}

async function readInWasm(bytes: Uint8Array, mediaType: string): Promise<Report> {
  const { WasmReader } = await wasm();
  const reader = await WasmReader.fromBlob(mediaType, new SlicedBlob(bytes) as unknown as Blob);
  return reportOf(JSON.parse(reader.json()));
}

function reportOf(json: object): Report {
  const { validation_state: state, validation_status: statuses } = json as {
    validation_state: string;
    validation_status?: { code: string }[];
  };
  return { state, statuses: (statuses ?? []).map(({ code }) => code) };
}

/** What the WASM reader needs of a browser's Blob, over bytes in memory. */
class SlicedBlob {
  readonly bytes: Uint8Array;
  readonly size: number;
  readonly type = '';

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.size = bytes.length;
  }

  slice(start: number | bigint, end: number | bigint): SlicedBlob {
    return new SlicedBlob(this.bytes.subarray(Number(start), Number(end)));
  }
}

type Wasm = typeof import('@contentauth/c2pa-wasm');
let loadedWasm: Promise<Wasm> | null = null;

/** The WASM reader is made for browsers' workers: it reads blobs synchronously, which Node's own cannot do. */
function wasm(): Promise<Wasm> {
  loadedWasm ??= (async () => {
    const readSync = (blob: SlicedBlob): ArrayBuffer => new Uint8Array(blob.bytes).buffer;
    Object.assign(globalThis, {
      Blob: SlicedBlob,
      FileReaderSync: class {
        readonly readAsArrayBuffer = readSync;
      },
    });
    const module = await import('@contentauth/c2pa-wasm');
    const entry = createRequire(import.meta.url).resolve('@contentauth/c2pa-wasm');
    await module.default({ module_or_path: readFileSync(path.join(path.dirname(entry), 'c2pa_bg.wasm')) });
    return module;
  })();
  return loadedWasm;
}

async function makeManifest({ label, data }: HardBinding): Promise<Buffer> {
  const definition = {
    title: 'test',
    claim_generator_info: [{ name: 'test', version: '1' }],
    assertions: [{ label, data }],
  };
  const builder = Builder.withJson(definition as never, settings);
  builder.setIntent({ create: 'http://cv.iptc.org/newscodes/digitalsourcetype/digitalCapture' } as never);
  builder.setNoEmbed(true);
  const standIn = { buffer: Buffer.alloc(0), mimeType: 'application/octet-stream' };
  return builder.sign(testSigner(), standIn, { buffer: null });
}

let signer: LocalSigner | null = null;

/** A throw-away certificate chain: the readers refuse self-signed leaves and ones without an organisation. */
function testSigner(): LocalSigner {
  if (signer !== null) return signer;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'identity-'));
  try {
    const leafExtensions =
      'keyUsage=critical,digitalSignature\nextendedKeyUsage=emailProtection\n' +
      'basicConstraints=critical,CA:FALSE\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid';
    writeFileSync(path.join(folder, 'leaf.ext'), leafExtensions);
    const openssl = (command: string): void => void run(folder, 'openssl', ...command.split(' '));
    openssl('ecparam -name prime256v1 -genkey -noout -out root.key');
    openssl('req -x509 -new -key root.key -days 2 -subj /O=Test/CN=Root -out root.pem');
    openssl('genpkey -algorithm EC -pkeyopt ec_paramgen_curve:prime256v1 -out leaf.key');
    openssl('req -new -key leaf.key -subj /O=Test/CN=Leaf -out leaf.csr');
    openssl(
      'x509 -req -in leaf.csr -CA root.pem -CAkey root.key -CAcreateserial -days 2 -extfile leaf.ext -out leaf.pem',
    );
    const chain = Buffer.concat(['leaf.pem', 'root.pem'].map((file) => readFileSync(path.join(folder, file))));
    signer = LocalSigner.newSigner(chain, readFileSync(path.join(folder, 'leaf.key')), 'es256');
    return signer;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
