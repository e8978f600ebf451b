import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { compileFunction, createContext, runInContext } from 'node:vm';

/** The part of Shaka that is called here: its parsers, and what they return. */
interface Shaka {
  readonly dash: { readonly DashParser: new () => ManifestParser };
  readonly hls: { readonly HlsParser: new () => ManifestParser };
  readonly util: {
    readonly AbortableOperation: new (promise: Promise<object>, abort: () => Promise<void>) => object;
    readonly PlayerConfiguration: { createDefault(): ShakaConfiguration };
    readonly PeriodCombiner: { readonly prototype: { combinePeriods(periods: readonly ShakaPeriod[]): Promise<void> } };
  };
  readonly media: { readonly SegmentIndex: { forSingleSegment: unknown; new (references: readonly []): unknown } };
}

interface ShakaConfiguration {
  readonly manifest: object;
  readonly streaming: { readonly retryParameters: object };
}

export interface ManifestParser {
  configure(manifest: object): void;
  start(url: string, player: object): Promise<ShakaManifest>;
  stop(): Promise<void>;
}

export interface ShakaManifest {
  readonly variants: readonly { readonly video: ShakaStream | null; readonly audio: ShakaStream | null }[];
  readonly textStreams: readonly ShakaStream[];
}

export interface ShakaPeriod {
  readonly videoStreams: readonly ShakaStream[];
  readonly audioStreams: readonly ShakaStream[];
  readonly textStreams: readonly ShakaStream[];
  readonly imageStreams: readonly ShakaStream[];
}

export interface ShakaStream {
  readonly originalId: string;
  createSegmentIndex(): Promise<void>;
  readonly segmentIndex: { forEachTopLevelReference(visit: (reference: ShakaReference) => void): void };
}

export interface ShakaPart {
  getUris(): readonly string[];
  getStartByte(): number;
  getEndByte(): number | null;
}

interface ShakaReference extends ShakaPart {
  readonly initSegmentReference: ShakaPart | null;
  /** Two where the playlist says that the segment is missing. */
  readonly status: number;
}

/** The build whose names are those of the source, so that methods which are not exported can be replaced. */
const SCRIPT = fileURLToPath(import.meta.resolve('shaka-player/dist/shaka-player.compiled.debug.js'));

/** Methods of maps that browsers have and Node does not. */
const MISSING_IN_NODE = `for (const { prototype } of [Map, WeakMap]) {
  prototype.getOrInsertComputed ??= function (key, make) { return this.has(key) ? this.get(key) : (this.set(key, make(key)), this.get(key)); };
  prototype.getOrInsert ??= function (key, value) { return this.getOrInsertComputed(key, () => value); };
}`;

/** Loads Shaka in a context of its own, with as much of a browser as its parsers ask for. */
export function loadShaka(): Shaka {
  const silent = Object.fromEntries(['log', 'info', 'debug', 'warn', 'error'].map((name) => [name, () => undefined]));
  const browser: Record<string, unknown> = {
    console: silent,
    navigator: { userAgent: '', platform: '', vendor: '', language: 'en', languages: ['en'] },
    document: { createElement: () => ({ canPlayType: () => '' }), addEventListener: () => undefined },
    MediaSource: { isTypeSupported: () => true },
    location: new URL('http://folder.invalid/'),
    // Playlists are not read again.
    setTimeout: (call: () => void, ms: number) => (ms > 0 ? 0 : setTimeout(call)),
    ...{ clearTimeout, performance, crypto, atob, btoa, ReadableStream },
    ...{ URL, URLSearchParams, TextDecoder, TextEncoder, Event, EventTarget, AbortController, Headers },
  };
  const context = createContext(Object.assign(browser, { window: browser, self: browser }));
  runInContext(MISSING_IN_NODE, context);
  const exports = {};
  compileFunction(readFileSync(SCRIPT, 'utf8'), ['exports'], { filename: SCRIPT, parsingContext: context })(exports);
  return exports as Shaka;
}
