import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inCommandWords } from '../../src/cli/command-words.ts';
import { warning } from '../../src/errors/warning.ts';

test('warnings of packaging name no fields of requests', () => {
  const problem = 'a larger rendition has the same; name it in params.tracks to keep both';
  const leftOut = warning('TRACK_LEFT_OUT', { file: 'a.mp4', track: 'the audio', problem });
  const kinds = warning('AUXILIARY_RENDITIONS_LEFT_OUT', { kinds: ['pictures'] });
  assert.equal(inCommandWords(leftOut.message), 'The audio of "a.mp4" was left out: a larger rendition has the same.');
  assert.match(inCommandWords(kinds.message), /do not have\.$/);
});
