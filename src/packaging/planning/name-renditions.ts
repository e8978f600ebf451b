import type { AlignedStream } from './align-times.ts';
import { languageName } from './languages.ts';
import type { PlannedStream } from './packaging-plan.ts';
import { codecNameOf, FolderNames, videoName } from './rendition-names.ts';

/** Labels come from files, too, and stand in menus. */
const MAX_LABEL_LENGTH = 100;

/** What a label says beside the language, by the role. */
const ROLE_WORDS: Readonly<Record<string, string>> = {
  commentary: 'commentary',
  description: 'audio description',
  caption: 'CC',
};

/** Gives every stream its folder and its label, each once. What the request names comes first to its name. */
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

/** Names are unique within a group of HLS (RFC 8216 §4.3.4.1.1). */
function uniqueLabel(label: string, group: string, taken: Set<string>): string {
  for (let count = 1; ; count += 1) {
    const candidate = count === 1 ? label : `${label} ${count}`;
    if (taken.has(`${group}\0${candidate}`)) continue;
    taken.add(`${group}\0${candidate}`);
    return candidate;
  }
}

/** Players take the first audio where nothing else tells them: the default language goes first. */
function inPlayersOrder(streams: readonly PlannedStream[], defaultLanguage: string | null): PlannedStream[] {
  const isDefault = ({ kind, language }: PlannedStream): number =>
    kind === 'audio' && language === defaultLanguage ? 0 : 1;
  const ofKind = (kind: string) => streams.filter((stream) => stream.kind === kind);
  const audio = ofKind('audio').sort((first, second) => isDefault(first) - isDefault(second));
  return [...ofKind('video'), ...audio, ...ofKind('text')];
}
