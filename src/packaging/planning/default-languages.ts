import { type Warning, warning } from '#errors/warning.ts';
import type { DefaultLanguages, PlannedStream } from '../packaging-plan.ts';
import type { AlignedStream } from './align-times.ts';
import { UNKNOWN_LANGUAGE } from './languages.ts';

/**
 * Chooses the default languages for a requested one, which is canonical, or null where the request names none. Audio
 * falls back to a track that may have the requested language, because its file states none, and then to the first one:
 * without a default, players choose at random. Subtitles are shown only where no audio has the requested language.
 */
export function defaultLanguages(chosen: readonly AlignedStream[], requested: string | null): DefaultLanguages {
  const audio = chosen.filter(({ stream }) => stream.kind === 'audio');
  const text = chosen.filter(({ stream }) => stream.kind === 'text');
  const heard = matchOf(audio, requested);
  return {
    defaultLanguage: heard ?? (requested === null ? null : untagged(audio)) ?? audio[0]?.language ?? null,
    defaultTextLanguage: heard === null ? matchOf(text, requested) : null,
  };
}

/** Returns the language of the streams that matches: the same one, else a regional form of it (RFC 4647 §3.3.1). */
function matchOf(streams: readonly Pick<PlannedStream, 'language'>[], requested: string | null): string | null {
  if (requested === null) return null;
  const languages = streams.map(({ language }) => language);
  return languages.find((each) => each === requested) ?? languages.find(isFormOf(requested)) ?? null;
}

function isFormOf(requested: string): (language: string) => boolean {
  return (language) => language.startsWith(`${requested}-`);
}

function untagged(audio: readonly AlignedStream[]): string | null {
  const isMain = ({ role }: AlignedStream): boolean => role === null || role === 'main';
  return audio.some((stream) => stream.language === UNKNOWN_LANGUAGE && isMain(stream)) ? UNKNOWN_LANGUAGE : null;
}

/** Warns about a requested language that no track is known to have. `streams` are in the order of the publication. */
export function unmatchedDefault(streams: readonly PlannedStream[], requested: string | null): Warning[] {
  const spoken = streams.filter(({ kind }) => kind !== 'video');
  if (requested === null || matchOf(spoken, requested) !== null) return [];
  const audio = spoken.find(({ kind }) => kind === 'audio');
  const { file = null, language = UNKNOWN_LANGUAGE } = audio ?? {};
  const fileLanguage = language === UNKNOWN_LANGUAGE ? null : language;
  return [warning('DEFAULT_LANGUAGE_UNMATCHED', { language: requested, file, fileLanguage })];
}
