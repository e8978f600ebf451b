import { AppError } from '#errors/app-error.ts';
import type { MediaPart } from '#publications/media-part.ts';
import { FolderIndex } from '#publications/playlists/folder-index.ts';
import { attributeOf } from '#publications/playlists/hls-lines.ts';
import { partOf, referencesOf } from '#publications/playlists/hls-playlist.ts';
import { MpdValues } from '#publications/playlists/mpd-values.ts';
import type {
  HlsMap,
  HlsMultivariant,
  HlsSegment,
  PlaylistDocument,
} from '#publications/playlists/playlist-document.ts';
import { parsePlaylist, refusePartialSegments } from '#publications/playlists/read-playlists.ts';
import { childrenOf, LineIndex, type XmlElement } from '#publications/playlists/xml-element.ts';
import { findingsIn } from '#publications/verification/playlist-findings.ts';
import { folderOf } from '../../support/publications/make-folder.ts';
import { describeSegment, PLAYLIST_PATH, PLAYLIST_URL, type Reading, type ReadPart } from './reading.ts';

const ROOT = new URL('/', PLAYLIST_URL);
const { signal } = new AbortController();

/** Reads a playlist as verification does. Returns null where verification finds fault with it, so that it is never called valid. */
export async function judgedReading(text: string): Promise<Reading | null> {
  try {
    return await readingOf(text);
  } catch (error) {
    if (error instanceof AppError) return null;
    throw error;
  }
}

async function readingOf(text: string): Promise<Reading | null> {
  // Whatever a playlist names exists here, since an attacker may have put it there.
  const everything = { ...folderOf({}), addFile: () => undefined, open: refuseToOpen };
  const index = new FolderIndex(everything, 'keep');
  const document = await parsePlaylist(everything, index, PLAYLIST_PATH, text, signal);
  refusePartialSegments([document]);
  if (document.kind === 'hls-media' && [...document.segments, ...document.gaps].some(isTooLong)) return null;
  if (document.kind === 'mpd' && hasPeriodsThatDoNotMeet(document.root)) return null;
  const isOfKeyFrames = document.kind === 'hls-media' && document.iFramesOnly;
  const findings = findingsIn([{ document, isPlayedAsMedia: !isOfKeyFrames }]);
  return findings.some(({ kind }) => kind !== 'unknown') ? null : readDocument(document);
}

/** Returns true for a duration that no media here have: the judge compares those that are stated with those of the media. */
function isTooLong({ durationSeconds }: HlsSegment): boolean {
  return durationSeconds > 1_000;
}

/** Returns true where a period ends elsewhere than the next one begins, or the MPD ends: the judge compares it with the media. */
function hasPeriodsThatDoNotMeet(root: XmlElement): boolean {
  const values = new MpdValues(PLAYLIST_PATH, new LineIndex(''));
  const total = values.duration(root, 'mediaPresentationDuration');
  let end: number | undefined = 0;
  for (const period of childrenOf(root, 'Period')) {
    const start = values.duration(period, 'start');
    if (end === undefined || (start !== undefined && start !== end)) return true;
    const duration = values.duration(period, 'duration');
    end = duration === undefined ? undefined : (start ?? end ?? 0) + duration;
  }
  return end !== undefined && total !== undefined && Math.abs(end - total) > 0.1;
}

/** Refuses to open the media that an MPD with SegmentBase names: there are none. */
function refuseToOpen(name: string): never {
  throw new AppError('PUBLICATION_NOT_FOUND', { name });
}

function readDocument(document: PlaylistDocument): Reading {
  if (document.kind === 'hls-multivariant') return readMultivariant(document);
  if (document.kind === 'mpd') {
    const addressed = document.representations.filter(({ addressing }) => /^(?:template|list)$/.test(addressing));
    const describe = (part: MediaPart, init: MediaPart | null): string =>
      describeSegment(readPart(part), init === null ? undefined : readPart(init));
    const representations = addressed.map(({ lineage, init, segments }) => ({
      id: lineage[3].attributes.get('id') ?? '',
      segments: segments.map(({ part }) => describe(part, init)),
    }));
    const listed = new Set(representations.flatMap(({ segments }) => segments));
    const adjacent = addressed
      .flatMap((each) => each.adjacent.map(({ path }) => describe({ path, range: null }, each.init)))
      .filter((segment) => !listed.has(segment));
    return { kind: 'mpd', representations, adjacent: new Set(adjacent) };
  }
  const partAt = (each: HlsSegment | HlsMap): ReadPart => readPart(partOf(document, each));
  const segments = document.segments.map((segment) =>
    describeSegment(partAt(segment), segment.map === null ? undefined : partAt(segment.map)),
  );
  return { kind: 'media', segments };
}

function readPart({ path, range }: MediaPart): ReadPart {
  const url = new URL(path.split('/').map(encodeURIComponent).join('/'), ROOT).href;
  return { url, range: range ?? undefined };
}

function readMultivariant(playlist: HlsMultivariant): Reading {
  const variants: string[] = [];
  const renditions: string[] = [];
  const keyFrames: string[] = [];
  for (const { tag, path, isVariant, isOfKeyFrames } of referencesOf(playlist)) {
    if (isVariant) variants.push(`/${path}`);
    else if (isOfKeyFrames) keyFrames.push(`/${path}`);
    else if (tag?.name === 'EXT-X-MEDIA') {
      renditions.push([attributeOf(tag, 'TYPE'), attributeOf(tag, 'GROUP-ID'), `/${path}`].join(' '));
    }
  }
  return { kind: 'multivariant', variants, renditions, keyFrames };
}
