import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inCommandWords } from '../../src/cli/command-words.ts';
import { AppError } from '../../src/errors/app-error.ts';
import { warning } from '../../src/errors/warning.ts';

test('warnings of packaging name no fields of requests', () => {
  const problem = 'a larger rendition has the same; name it in params.tracks to keep both';
  const leftOut = warning('TRACK_LEFT_OUT', { file: 'a.mp4', track: 'the audio', problem });
  const kinds = warning('AUXILIARY_RENDITIONS_LEFT_OUT', { kinds: ['pictures'] });
  assert.equal(inCommandWords(leftOut.message), 'The audio of "a.mp4" was left out: a larger rendition has the same.');
  assert.match(inCommandWords(kinds.message), /do not have\.$/);
  const found = { playlists: ['a.mpd'], playlistCount: 1, renditionCount: 1, segments: 'CMAF segments' } as const;
  const existing = warning('PUBLICATION_FOUND', { ...found, treatment: 'signed' });
  assert.match(inCommandWords(existing.message), /It was signed as it is\.$/);
  const films = new AppError('PACKAGING_FILMS_DIFFER', { folder: 'a', films: [], count: 2, limitSeconds: 1 });
  assert.match(inCommandWords(films.message), /one film: .* Submit a folder for each film\.$/);
});

test('problems ask for nothing that only callers and operators of a service can do', () => {
  const messages = [
    new AppError('SEGMENTS_NEED_PACKAGING', { segment: 'a.ts' }),
    new AppError('FRAGMENT_IS_CHUNKED', { file: '1.m4s', moofCount: 2, mdatCount: 2 }),
    new AppError('SIDECAR_SOURCE_SIGNED', { name: 'a.mp4' }),
    new AppError('SOURCE_NOT_FOUND', { path: 'https://example.com/a' }),
    new AppError('FORMAT_UNKNOWN', { name: 'a', startsLike: null, containers: 'MP4', operation: 'verify' }),
    new AppError('OUTPUT_TAKEN', { path: 'a' }),
    new AppError('OUTPUT_FAILED', { path: 'a', problem: 'x' }),
    new AppError('OUTPUT_DISK_FULL', { path: 'a', neededBytes: 1, freeBytes: 0, reservedBytes: 0 }),
    new AppError('OUTPUT_EXCEEDS_DISK', { path: 'a', neededBytes: 2, totalBytes: 1 }),
    new AppError('SOURCE_NOT_PERMITTED', { path: 'a' }),
    new AppError('TIME_STAMP_UNAVAILABLE', { problems: ['x'] }),
    new AppError('FOLDER_UNUSABLE', { key: '--output', folder: 'a', problem: 'the service has no permission' }),
  ].map(({ message }) => inCommandWords(message));
  for (const message of messages)
    assert.doesNotMatch(message, /service|operator|request|[Pp]ackage-and|output\.\w|params|"url"/, message);
});
