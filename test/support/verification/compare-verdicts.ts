import { join } from 'node:path';
import type { Verification } from '#contract/verification.ts';
import { AppError } from '#errors/app-error.ts';
import { blobOf, identitySettings, NO_PUBLISHERS, wasmReader } from '#provenance/reading/wasm-reader.ts';
import type { Rendition } from '#publications/media-part.ts';
import { writeFiles } from '../publications/make-folder.ts';
import type { Files } from '../publications/signed-publication.ts';
import type { SeededRandom } from '../seeded-random.ts';
import { verifyInput } from './verify-input.ts';

/** The settings that anybody's reader has. */
const SETTINGS = identitySettings(NO_PUBLISHERS);

/** A verdict as it is compared: `unreadable` where a manifest or a container cannot be read at all. */
export type ComparedVerdict = Verification['state'] | 'unreadable';

/** The two verdicts on a file or publication. */
export interface Comparison {
  readonly ours: ComparedVerdict;
  readonly wasm: ComparedVerdict;
  /** The error of this service or its codes, and the reader's codes or error. */
  readonly why: readonly [ours: string, wasm: string];
}

interface Reading {
  readonly verdict: ComparedVerdict;
  readonly why: string;
}

/** Judges a file by this service and by the WASM reader. */
export async function compareFile(
  name: string,
  bytes: Uint8Array,
  mediaType: string,
  folder: string,
): Promise<Comparison> {
  const home = writeFiles(folder, { [name]: bytes });
  const ours = await ourReading({ type: 'local_file_path', path: join(home, name) }, home);
  const wasm = await wasmReading((Reader) => Reader.fromBlob(mediaType, blobOf(bytes), SETTINGS));
  return compared(ours, wasm);
}

/**
 * Judges a publication by this service, and all its fragments by the WASM reader. It is invalid where that calls any of them invalid,
 * cannot read one, or finds no manifest with one and finds it with others.
 */
export async function comparePublication(
  files: Files,
  renditions: readonly Rendition[],
  folder: string,
): Promise<Comparison> {
  const home = writeFiles(join(folder, 'show'), files);
  const ours = await ourReading({ type: 'local_folder_path', path: home }, folder);
  const readings: Reading[] = [];
  for (const { init, fragments } of renditions) {
    for (const { path } of fragments) {
      const [head, part] = [blobOf(files[init.path] as Uint8Array), blobOf(files[path] as Uint8Array)];
      readings.push(await wasmReading((Reader) => Reader.fromBlobFragment('video/mp4', head, part, SETTINGS)));
    }
  }
  const [first] = readings as [Reading];
  const other = readings.find(({ verdict }) => verdict !== first.verdict);
  const worst = other === undefined ? first : { verdict: 'invalid' as const, why: `${first.why}; ${other.why}` };
  const asWhole = (reading: Reading) =>
    reading.verdict === 'unreadable' ? { ...reading, verdict: 'invalid' as const } : reading;
  return compared(asWhole(ours), asWhole(worst));
}

function compared(ours: Reading, wasm: Reading): Comparison {
  return { ours: ours.verdict, wasm: wasm.verdict, why: [ours.why, wasm.why] };
}

async function ourReading(input: Parameters<typeof verifyInput>[0], folder: string): Promise<Reading> {
  try {
    const { state, codes } = (await verifyInput(input, folder)).verification;
    const failures = codes.filter(({ kind }) => kind === 'failure').map(({ code }) => code);
    return { verdict: failures.includes('general.error') ? 'unreadable' : state, why: failures.join(', ') };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { verdict: 'unreadable', why: `${error.reason}: ${error.message}` };
  }
}

type Reader = Awaited<ReturnType<typeof wasmReader>>;

async function wasmReading(read: (reader: Reader) => ReturnType<Reader['fromBlob']>): Promise<Reading> {
  try {
    const reader = await read(await wasmReader());
    const report = JSON.parse(reader.json());
    reader.free();
    const { validation_state: state, validation_results: results } = report as {
      validation_state: string;
      validation_results?: { activeManifest?: { failure: { code: string }[] } };
    };
    const codes = (results?.activeManifest?.failure ?? []).map(({ code }) => code);
    return { verdict: state.toLowerCase() as ComparedVerdict, why: codes.join(', ') };
  } catch (error) {
    const why = String(error);
    return { verdict: /JumbfNotFound/.test(why) ? 'none' : 'unreadable', why };
  }
}

/** Returns a copy of a file with one change of a random kind at a random place. */
export function tampered(bytes: Uint8Array, random: SeededRandom): { readonly bytes: Buffer; readonly change: string } {
  const source = Buffer.from(bytes);
  // Half of the changes are near the start, where containers have their structure and the manifest.
  const at = random.between(0, random.chance(0.5) ? Math.min(20_000, source.length - 1) : source.length - 1);
  const length = random.between(1, 64);
  const [before, behind] = [source.subarray(0, at), source.subarray(at)];
  const changes = {
    flip: () => {
      const changed = Buffer.from(source);
      changed.writeUInt8((source[at] as number) ^ (1 << random.between(0, 7)), at);
      return changed;
    },
    zero: () => Buffer.concat([before, Buffer.alloc(Math.min(length, behind.length)), behind.subarray(length)]),
    insert: () => Buffer.concat([before, Buffer.alloc(length, random.between(0, 255)), behind]),
    remove: () => Buffer.concat([before, behind.subarray(length)]),
    truncate: () => source.subarray(0, Math.max(at, 64)),
    append: () => Buffer.concat([source, Buffer.alloc(length, random.between(0, 255))]),
    repeat: () => Buffer.concat([before, behind.subarray(0, length), behind]),
  };
  const change = random.pick(Object.keys(changes) as (keyof typeof changes)[]);
  return { bytes: changes[change](), change: `${change} ${length} at ${at}` };
}
