import type { PlannedStream } from '../packaging-plan.ts';
import type { ProbedStream } from '../probed-file.ts';
import type { AlignedStream } from './align-times.ts';
import { languageName } from './languages.ts';
import { becomesFlac } from './stream-routes.ts';

/** Limit of a label, which may come from a file and is shown in menus. */
const MAX_LABEL_LENGTH = 100;

/** Words of a label after the language, by role. */
const ROLE_WORDS: Readonly<Record<string, string>> = {
  commentary: 'commentary',
  description: 'audio description',
  caption: 'CC',
};

/** Gives every stream a unique folder and label. Names in the request take precedence. */
export function nameRenditions(chosen: readonly AlignedStream[], defaultLanguage: string | null): PlannedStream[] {
  const folders = new FolderNames();
  const named = chosen.map(({ stream, track }) =>
    track?.name === undefined ? null : folders.take(stream.kind, track.name),
  );
  const labels = new Set<string>();
  const streams = chosen.map((candidate, index): PlannedStream => {
    const { file, stream, route, language, role, isForced, shiftSeconds, fileStartSeconds } = candidate;
    const codec = codecNameOf(stream);
    return {
      file: file.path,
      container: file.container,
      kind: stream.kind,
      id: stream.id,
      indexOfKind: stream.indexOfKind,
      streamIndex: stream.streamIndex,
      codec,
      sourceCodec: stream.codec ?? codec,
      width: stream.width,
      height: stream.height,
      language,
      label: uniqueLabel(labelOf(candidate), `${stream.kind} ${codec}`, labels),
      role,
      isForced,
      folder: named[index] ?? folders.take(stream.kind, nameOf(candidate, codec)),
      route,
      startSeconds: stream.startSeconds,
      shiftSeconds,
      fileStartSeconds,
      undecodableSeconds: stream.undecodableSeconds,
      rotation: stream.rotation,
      durationSeconds: stream.durationSeconds,
    };
  });
  return inPlayersOrder(streams, defaultLanguage);
}

function nameOf({ stream, language }: AlignedStream, codec: string): string {
  if (stream.kind === 'video') return videoName(codec, stream.width, stream.height);
  return stream.kind === 'audio' ? `${language}_${codec}` : language;
}

function labelOf({ stream, language, role, isForced, track }: AlignedStream): string {
  const given = track?.label ?? stream.title ?? '';
  // Quotation marks and commas have a meaning in playlists, and in the packager's arguments.
  const title = given.replaceAll(/[\p{Cc}",]+/gu, ' ');
  const label = title.trim().slice(0, MAX_LABEL_LENGTH);
  if (label !== '') return label;
  const word = isForced ? 'forced' : ROLE_WORDS[role ?? ''];
  return word === undefined ? languageName(language) : `${languageName(language)} (${word})`;
}

/** Makes a label unique within a group of HLS (RFC 8216 §4.3.4.1.1). */
function uniqueLabel(label: string, group: string, taken: Set<string>): string {
  for (let count = 1; ; count += 1) {
    const candidate = count === 1 ? label : `${label} ${count}`;
    if (taken.has(`${group}\0${candidate}`)) continue;
    taken.add(`${group}\0${candidate}`);
    return candidate;
  }
}

/** Puts the default language first: without other hints, players take the first audio. */
function inPlayersOrder(streams: readonly PlannedStream[], defaultLanguage: string | null): PlannedStream[] {
  const isDefault = ({ kind, language }: PlannedStream): number =>
    kind === 'audio' && language === defaultLanguage ? 0 : 1;
  const ofKind = (kind: string) => streams.filter((stream) => stream.kind === kind);
  const audio = ofKind('audio').sort((first, second) => isDefault(first) - isDefault(second));
  return [...ofKind('video'), ...audio, ...ofKind('text')];
}

/** Short names of codecs, by mediabunny's. */
const CODEC_NAMES: Readonly<Record<string, string>> = { avc: 'h264' };

/** Returns the short name of a codec after packaging, as it stands in the name of a rendition. */
export function codecNameOf({ kind, codec }: ProbedStream): string {
  if (kind === 'text') return 'vtt';
  if (becomesFlac(codec)) return 'flac';
  return CODEC_NAMES[codec ?? ''] ?? codec ?? 'unknown';
}

/** Returns `h264_1080p`: sizes are named by the shorter side of the picture. */
export function videoName(codec: string, width: number | null, height: number | null): string {
  return width === null || height === null ? codec : `${codec}_${Math.min(width, height)}p`;
}

/** Reserves folder names; a name that is taken gets a number. */
export class FolderNames {
  readonly #taken = new Set<string>();

  take(kind: string, name: string): string {
    for (let count = 1; ; count += 1) {
      const folder = `${kind}/${count === 1 ? name : `${name}_${count}`}`;
      if (this.#taken.has(folder.toLowerCase())) continue;
      this.#taken.add(folder.toLowerCase());
      return folder;
    }
  }
}
