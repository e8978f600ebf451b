import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withoutLink } from '../../src/cli/named-folder.ts';
import { AppError } from '../../src/errors/app-error.ts';

test('a result names the folder as it was given, and not the link that its output is named after', () => {
  const details = { folder: 'film_c2pa', problems: [{ file: 'a.mp4', problem: 'is empty' }], count: 1 };
  const { message } = new AppError('PACKAGING_FILES_BROKEN', details);
  const told = { ...details, reason: 'PACKAGING_FILES_BROKEN' };
  const entry = {
    input_index: 0,
    input_name: 'film_c2pa',
    status: 'failed',
    error: message,
    error_details: told,
  } as const;
  const link = { type: 'local_folder_path', path: '/run/inputs/0/film_c2pa' } as const;
  const named = withoutLink(entry, link, '/media/film');
  assert.match(named.error ?? '', /^A file of "film" cannot be read/);
  assert.deepEqual(named.error_details, { ...told, folder: 'film' });
  assert.equal(named.input_name, 'film');
  const taken = withoutLink({ ...entry, error: 'There is "/out/film_c2pa" already.' }, link, '/media/film');
  assert.equal(taken.error, 'There is "/out/film_c2pa" already.');
});

test('a result names a folder with dollar signs as it was given', () => {
  const link = { type: 'local_folder_path', path: '/run/inputs/0/film_c2pa' } as const;
  const error = 'There is no playlist in "/run/inputs/0/film_c2pa", the folder "film_c2pa".';
  const entry = { input_index: 0, input_name: 'film_c2pa', status: 'failed', error } as const;
  const named = withoutLink(entry, link, "/media/a$$b$&c$'");
  assert.equal(named.error, `There is no playlist in "/media/a$$b$&c$'", the folder "a$$b$&c$'".`);
  assert.equal(named.input_name, "a$$b$&c$'");
});
