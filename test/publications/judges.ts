import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Builder, LocalSigner } from '@contentauth/c2pa-node';
import type { HardBinding } from '#formats/format-handler.ts';

/** A manifest of nothing but a hard binding, made by the official SDK under a throw-away certificate. */
export async function makeManifest({ label, data }: HardBinding): Promise<Buffer> {
  const builder = Builder.withJson(
    {
      title: 'test',
      claim_generator_info: [{ name: 'test', version: '1' }],
      assertions: [{ label, data }],
    } as never,
    { verify: { verify_after_sign: false } },
  );
  builder.setIntent({ create: 'http://cv.iptc.org/newscodes/digitalsourcetype/digitalCapture' } as never);
  builder.setNoEmbed(true);
  const standIn = { buffer: Buffer.alloc(0), mimeType: 'application/octet-stream' };
  return builder.sign(testSigner(), standIn, { buffer: null });
}

/** What the WASM reader of the reference implementation finds wrong with one fragment; nothing where it is valid. */
export async function problemsOf(init: Uint8Array, fragment: Uint8Array): Promise<string[]> {
  const { WasmReader } = await wasm();
  try {
    const blobs = [new SlicedBlob(init), new SlicedBlob(fragment)] as unknown as [Blob, Blob];
    const reader = await WasmReader.fromBlobFragment('video/mp4', ...blobs);
    const report = JSON.parse(reader.json()) as { validation_state: string; validation_status?: { code: string }[] };
    const codes = (report.validation_status ?? []).map(({ code }) => code);
    const problems = codes.filter((code) => code !== 'signingCredential.untrusted');
    return report.validation_state === 'Valid' ? problems : [report.validation_state, ...problems];
  } catch (error) {
    return [String(error)];
  }
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

class SlicedBlobReader {
  readAsArrayBuffer({ bytes }: SlicedBlob): ArrayBuffer {
    return new Uint8Array(bytes).buffer;
  }
}

type Wasm = typeof import('@contentauth/c2pa-wasm');
let loaded: Promise<Wasm> | null = null;

/** The WASM reader is made for browsers' workers: it reads blobs synchronously, which Node's own cannot do. */
function wasm(): Promise<Wasm> {
  loaded ??= (async () => {
    Object.assign(globalThis, { Blob: SlicedBlob, FileReaderSync: SlicedBlobReader });
    const module = await import('@contentauth/c2pa-wasm');
    const entry = createRequire(import.meta.url).resolve('@contentauth/c2pa-wasm');
    await module.default({ module_or_path: readFileSync(join(dirname(entry), 'c2pa_bg.wasm')) });
    return module;
  })();
  return loaded;
}

const LEAF_EXTENSIONS = [
  'keyUsage=critical,digitalSignature',
  'extendedKeyUsage=emailProtection',
  'basicConstraints=critical,CA:FALSE',
  'subjectKeyIdentifier=hash',
  'authorityKeyIdentifier=keyid',
].join('\n');

let signer: LocalSigner | null = null;

/** A throw-away certificate chain: the readers refuse self-signed leaves and ones without an organisation. */
function testSigner(): LocalSigner {
  if (signer !== null) return signer;
  const folder = mkdtempSync(join(tmpdir(), 'identity-'));
  const openssl = (command: string): void => {
    execFileSync('openssl', command.split(' '), { cwd: folder, stdio: 'pipe' });
  };
  try {
    writeFileSync(join(folder, 'leaf.ext'), LEAF_EXTENSIONS);
    openssl('ecparam -name prime256v1 -genkey -noout -out root.key');
    openssl('req -x509 -new -key root.key -days 2 -subj /O=Test/CN=Root -out root.pem');
    openssl('genpkey -algorithm EC -pkeyopt ec_paramgen_curve:prime256v1 -out leaf.key');
    openssl('req -new -key leaf.key -subj /O=Test/CN=Leaf -out leaf.csr');
    openssl(
      'x509 -req -in leaf.csr -CA root.pem -CAkey root.key -CAcreateserial -days 2 -extfile leaf.ext -out leaf.pem',
    );
    const chain = Buffer.concat(['leaf.pem', 'root.pem'].map((file) => readFileSync(join(folder, file))));
    signer = LocalSigner.newSigner(chain, readFileSync(join(folder, 'leaf.key')), 'es256');
    return signer;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The MD5 of every frame that ffmpeg decodes of what `path` names. */
export function decodedFrames(path: string): string {
  const demuxing = path.endsWith('.m3u8') ? ['-allowed_extensions', 'ALL'] : [];
  const frames = execFileSync('ffmpeg', ['-v', 'error', ...demuxing, '-i', path, '-map', '0', '-f', 'framemd5', '-'], {
    maxBuffer: 64 * 1024 * 1024,
    stdio: ['ignore', 'pipe', 'pipe'],
    // It waits for more where it takes a manifest for a live one, and ends on nothing less.
    timeout: 60_000,
    killSignal: 'SIGKILL',
  }).toString('utf8');
  assert.ok(frames.split('\n').length > 10, 'frames were decoded');
  return frames;
}
