import assert from 'node:assert/strict';
import { linkSync, mkdirSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { ended, stallingFilm, Workplace } from './run-program.ts';

test('a command removes what a killed one had staged, and leaves what a running one has staged alone', async (t) => {
  const place = new Workplace();
  const [killed, running] = [await stallingFilm(t), await stallingFilm(t)];
  const children = [
    place.start('sign', killed.address, '--output', 'killed'),
    place.start('sign', running.address, '--output', 'running'),
  ] as const;
  const ends = children.map(ended);
  await Promise.all([killed.asked, running.asked]);
  children[0].kill('SIGKILL');
  await ends[0];
  assert.equal(readdirSync(place.path('killed')).length, 1);
  assert.equal((await place.run('verify', 'four-notes.mp3')).code, 3);
  assert.deepEqual(readdirSync(place.path('killed')), []);
  assert.equal(readdirSync(place.path('running')).length, 1);
  assert.equal(readdirSync(place.stateFolder).length, 1);
  children[1].kill('SIGINT');
  assert.equal((await ends[1])?.code, 130);
  assert.deepEqual(readdirSync(place.stateFolder), []);
});

test('a command signs 1,000 files', async () => {
  const place = new Workplace();
  mkdirSync(place.path('many'));
  for (let index = 0; index < 1_000; index += 1)
    linkSync(place.path('four-notes.mp3'), place.path(`many/${index}.mp3`));
  const { code, stdout, stderr } = await place.run('sign', 'many', '--recursive', '--output', 'out', '--json');
  assert.equal(code, 0, stderr);
  const indexes = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).input_index);
  assert.deepEqual(
    indexes.sort((one, other) => one - other),
    Array.from({ length: 1_000 }, (_, index) => index),
  );
  assert.equal(readdirSync(place.path('out')).length, 1_000);
});
