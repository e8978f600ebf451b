import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after } from 'node:test';
import { Reader } from '@contentauth/c2pa-node';
import { executePlan, fillHole } from '#bytes/execute-plan.ts';
import { outputSizeBytes } from '#bytes/splice-plan.ts';
import type { FormatHandler, MediaLayout } from '#formats/format-handler.ts';
import { formatOf } from '#formats/formats.ts';
import { blobOf, wasmReader } from '#provenance/reading/wasm-reader.ts';
import { makeManifest } from '../manifests/make-manifest.ts';
import { memorySink, memorySource } from '../memory-bytes.ts';

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
  const name = `${hash('sha256', bytes)}.${extension}`;
  const known = decoded.get(name);
  if (known !== undefined) return known;
  writeFileSync(path.join(folder, name), bytes);
  const args = ['-v', 'error', '-i', name, '-map', '0:a', '-f', 'md5', '-'];
  const md5 = run(folder, 'ffmpeg', ...args)
    .toString('utf8')
    .trim();
  decoded.set(name, md5);
  return md5;
}

/** The decoded audio of files by the hash of their content: several outputs are compared with one source. */
const decoded = new Map<string, string>();

/** Space for what the real reserve is larger than. */
const SLACK_BYTES = 101;

/** Signs a file as the service does it: layout, plan, one pass, official SDK, hole. */
export async function signBytes<Layout extends MediaLayout>(
  format: FormatHandler<Layout>,
  input: Uint8Array,
  {
    name = 'input.bin',
    slackBytes = SLACK_BYTES,
    label,
  }: { name?: string; slackBytes?: number; label?: string | undefined } = {},
): Promise<Buffer> {
  const { signal } = new AbortController();
  const source = memorySource(input, name);
  const layout = await format.readLayout(source, signal);
  const placeholder = format.placeholderBinding(layout);
  const reserveBytes = (await makeManifest(placeholder)).length + slackBytes;
  const { plan, binding } = format.planEmbedding(layout, reserveBytes);
  const sink = memorySink(outputSizeBytes(plan));
  const digests = await executePlan(plan, source, sink, { signal });
  await fillHole(plan, sink, await makeManifest(binding(digests), reserveBytes, undefined, label), signal);
  return sink.bytes;
}

/** Tells whether a status says that a certificate, of the signer or of its publisher, is on no trust list. */
export function isOfTrust(code: string): boolean {
  return code === 'signingCredential.untrusted' || code === 'cawg.x509.credential.untrusted';
}

/**
 * Asserts that both official readers find exactly one valid manifest, of which only trust in its certificates is missing, and
 * that it ends where its space in the file does.
 */
export async function assertValid(bytes: Uint8Array, mediaType: string): Promise<void> {
  await assertFilled(Buffer.from(bytes));
  for (const report of [await readNatively(bytes, mediaType), await readInWasm(bytes, mediaType)]) {
    const problems = report.statuses.filter((code) => !isOfTrust(code));
    assert.deepEqual({ state: report.state, problems }, { state: 'Valid', problems: [] });
  }
}

/** The size of the fields of a C2PA box around its store: size, type, id, version and flags, purpose, and an offset. */
const C2PA_BOX_FIELDS_BYTES = 8 + 16 + 4 + 'manifest\0'.length + 8;

/** Asserts that the chunk, frame or box that a manifest store is in ends with it. */
async function assertFilled(bytes: Buffer): Promise<void> {
  const layout = await formatOf(bytes)?.readLayout(memorySource(bytes), new AbortController().signal);
  if (layout?.manifest == null) return;
  const { offset, length } = layout.manifest;
  assert.equal(length, bytes.readUInt32BE(offset), 'the manifest fills its chunk, frame or box');
  if (bytes.toString('latin1', 4, 8) !== 'ftyp') return;
  assert.equal(bytes.readUInt32BE(offset - C2PA_BOX_FIELDS_BYTES), C2PA_BOX_FIELDS_BYTES + length);
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
  const WasmReader = await wasmReader();
  const reader = await WasmReader.fromBlob(mediaType, blobOf(bytes));
  return reportOf(JSON.parse(reader.json()));
}

function reportOf(json: object): Report {
  const { validation_state: state, validation_status: statuses } = json as {
    validation_state: string;
    validation_status?: { code: string }[];
  };
  return { state, statuses: (statuses ?? []).map(({ code }) => code) };
}
