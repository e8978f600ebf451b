import assert from 'node:assert/strict';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { firstConflict } from '#operations/validation/validate-request.ts';
import { admit, files, folder, refusal } from './submit-request.ts';

describe('what an operation on files takes', () => {
  for (const [path, name] of [
    ['/c2pa/video', 'a.mp4'],
    ['/c2pa/video', 'a.MOV'],
    ['/c2pa/video', 'a.m4a'],
    ['/c2pa/video', 'get.php'],
    ['/c2pa/video', 'no-extension'],
    ['/c2pa/video', '.hidden'],
    ['/c2pa/audio', 'a.mp3'],
    ['/c2pa/audio', 'a.WAV'],
    ['/c2pa/audio', 'a.flac'],
    ['/c2pa/audio', 'a.m4a'],
    ['/c2pa/audio', 'a.mp4'],
    ['/c2pa/audio', 'a.m4v'],
    ['/c2pa/audio', 'a.bin'],
    ['/c2pa/audio', 'no-extension'],
  ] as const) {
    test(`${name} is taken at ${path}`, () => admit(path, { inputs: files(`/media/${name}`) }));
  }

  for (const [path, name] of [
    ['/c2pa/video', 'a.mp3'],
    ['/c2pa/video', 'a.Wav'],
    ['/c2pa/video', 'a.flac'],
    ['/c2pa/video', 'a.webm'],
    ['/c2pa/video', 'a.mkv'],
    ['/c2pa/video', 'a.ts'],
    ['/c2pa/video', 'a.ogg'],
    ['/c2pa/audio', 'a.mov'],
    ['/c2pa/audio', 'a.3gp'],
    ['/c2pa/audio', 'a.aac'],
    ['/c2pa/audio', 'a.opus'],
    ['/c2pa/audio', 'a.webm'],
    ['/c2pa/audio', 'a.AIFF'],
  ] as const) {
    test(`${name} is refused at ${path}`, async () => {
      const inputs = [{ type: 'local_file_path', path: '/media/fine.mp4' }, ...files(`/media/${name}`)];
      const { code, inputIndex } = await refusal(path, { inputs });
      assert.deepEqual([code, inputIndex], ['INVALID_INPUT_TYPE', 1]);
    });
  }

  for (const input of [
    { type: 'local_folder_path', path: '/media' },
    { type: 'remote_folder_url', url: 's3://bucket/prefix' },
  ]) {
    test(`a ${input.type} is refused with its index`, async () => {
      const found = await refusal('/c2pa/video', { inputs: [...files('/media/a.mp4'), input] });
      assert.deepEqual(found, {
        reason: 'INPUT_IS_FOLDER',
        code: 'INVALID_INPUT_TYPE',
        field: 'inputs[1].type',
        inputIndex: 1,
      });
    });
  }

  test('a remote file is taken over HTTPS and HTTP, and refused over S3 as long as that is not set up', async () => {
    const at = (url: string) => ({ inputs: [{ type: 'remote_file_url', url }] });
    await admit('/c2pa/video', at('https://host/a.mp4?sig=hush'));
    await admit('/c2pa/video', at('http://host/a.mp4'));
    const found = await refusal('/c2pa/video', at('s3://bucket/a.mp4'));
    assert.deepEqual(found, {
      reason: 'S3_INPUTS_OFF',
      code: 'VALIDATION_FAILED',
      field: 'inputs[0].url',
      inputIndex: 0,
    });
  });

  test('the name of a remote file is its hint, or the last part of its path', async () => {
    for (const input of [
      { type: 'remote_file_url', url: 'https://host/get?id=1', filename_hint: 'a.mp3' },
      { type: 'remote_file_url', url: 'https://host/a.mp3?name=a.mp4' },
    ]) {
      assert.equal((await refusal('/c2pa/video', { inputs: [input] })).reason, 'INPUT_EXTENSION_REFUSED');
    }
  });

  test('more inputs than worker.max_inputs_per_job are refused', async () => {
    const env = { SERVICE__WORKER__MAX_INPUTS_PER_JOB: '2' };
    await admit('/c2pa/video', { inputs: files('/a.mp4', '/b.mp4') }, env);
    const found = await refusal('/c2pa/video', { inputs: files('/a.mp4', '/b.mp4', '/c.mp4') }, env);
    assert.deepEqual(found, { reason: 'TOO_MANY_INPUTS', code: 'VALIDATION_FAILED', field: 'inputs' });
  });
});

describe('parents and overrides', () => {
  const inputs = files('/media/a.mp4', '/media/b.mp4');
  const parent = { type: 'reference', reference: 'token' };

  test('overrides for each input once are taken', () =>
    admit('/c2pa/video', {
      inputs,
      params: { parent, parent_overrides: [{ input_index: 1 }, { input_index: 0, parent }] },
    }));

  test('an override for an input that is not there is refused', async () => {
    const { reason, field } = await refusal('/c2pa/video', {
      inputs,
      params: { parent_overrides: [{ input_index: 0 }, { input_index: 2 }] },
    });
    assert.deepEqual([reason, field], ['OVERRIDE_OUT_OF_RANGE', 'params.parent_overrides[1].input_index']);
  });

  test('two overrides for one input are refused', async () => {
    const overrides = [{ input_index: 1 }, { input_index: 1, parent }];
    const { reason, field } = await refusal('/c2pa/video', { inputs, params: { parent_overrides: overrides } });
    assert.deepEqual([reason, field], ['OVERRIDE_REPEATED', 'params.parent_overrides[1].input_index']);
  });

  test('a remote parent is taken over HTTPS, and refused over S3 as long as that is not set up', async () => {
    const parentAt = (url: string) => ({ type: 'file', source: { type: 'remote_file_url', url } });
    await admit('/c2pa/audio', { inputs, params: { parent: parentAt('https://host/a.mp4') } });
    const remote = parentAt('s3://bucket/a.mp4');
    const common = await refusal('/c2pa/audio', { inputs, params: { parent: remote } });
    assert.deepEqual([common.reason, common.field], ['S3_INPUTS_OFF', 'params.parent.source.url']);
    const single = await refusal('/c2pa/audio', {
      inputs,
      params: { parent_overrides: [{ input_index: 1, parent: remote }] },
    });
    assert.equal(single.field, 'params.parent_overrides[0].parent.source.url');
  });
});

describe('tracks of a folder that is packaged', () => {
  const request = (...tracks: object[]) => ({
    inputs: [{ type: 'local_folder_path', path: '/media/film' }],
    params: { tracks },
  });
  const whole = { file: 'film.mp4', language: 'de' };
  const sound = { file: 'film.mp4', stream: 1, language: 'en' };

  for (const path of ['/package', '/c2pa/package'] as const) {
    test(`are taken at ${path} for a file and for streams of it`, () =>
      admit(path, request(whole, sound, { ...sound, stream: 2 }, { ...whole, file: 'other.mp4' })));

    test(`are refused at ${path} where two are for the same, since one of them would not count`, async () => {
      const many = Array.from({ length: 600 }, (_, stream) => ({ ...sound, stream }));
      for (const [tracks, index] of [
        [[whole, sound, { ...sound, language: 'fr' }], 2],
        [[sound, whole, whole], 2],
        [[...many, sound], 600],
      ] as const) {
        const { code, field } = await refusal(path, request(...tracks));
        assert.deepEqual([code, field], ['VALIDATION_FAILED', `params.tracks[${index}]`]);
      }
    });
  }
});

describe('assertions', () => {
  const inputs = files('/media/a.mp4');

  test('that a manifest can carry are taken', () =>
    admit('/c2pa/video', {
      inputs,
      params: { assertions: [{ label: 'com.example.a', data: { list: [1, null, 'ä'] } }] },
    }));

  for (const [what, label, data, field] of [
    ['a reserved label', 'c2pa.actions.v2', {}, 'params.assertions[1].label'],
    ['a label twice', 'com.example.a', {}, 'params.assertions[1].label'],
    [
      'data that is nested too deep',
      'com.example.b',
      JSON.parse('['.repeat(101) + ']'.repeat(101)),
      'params.assertions[1].data',
    ],
  ] as const) {
    test(`with ${what} are refused`, async () => {
      const assertions = [
        { label: 'com.example.a', data: 1 },
        { label, data },
      ];
      const found = await refusal('/c2pa/audio', { inputs, params: { assertions } });
      assert.deepEqual([found.code, found.field], ['VALIDATION_FAILED', field]);
    });
  }
});

describe('where outputs go', () => {
  const inputs = files('/media/a.mp4');

  test('an s3 output is refused without S3 support', async () => {
    const { code, field } = await refusal('/c2pa/video', { inputs, output: { type: 's3', bucket: 'b' } });
    assert.deepEqual([code, field], ['VALIDATION_FAILED', 'output.type']);
  });

  describe('in S3', () => {
    const s3 = { SERVICE__OUTPUT_SINKS__S3__BUCKETS: 'first,second', SERVICE__OUTPUT_SINKS__S3__BASE_PREFIX: 'base' };
    const to = (output: object) => ({ type: 's3', bucket: 'first', ...output });
    const env = { ...s3, SERVICE__INPUT_RESOLVERS__S3__FORCE_PATH_STYLE: 'true' };

    test('an allowed bucket is taken, and no other', async () => {
      await admit('/c2pa/video', { inputs, output: to({ prefix: 'x/y', name: 'z' }) }, s3);
      const { code, field } = await refusal('/c2pa/video', { inputs, output: to({ bucket: 'other' }) }, s3);
      assert.deepEqual([code, field], ['VALIDATION_FAILED', 'output.bucket']);
    });

    test('unsafe prefixes, and keys that are too long, are refused', async () => {
      for (const prefix of ['../x', '/x', 'a\\b', 'a/'.repeat(600)]) {
        const { code, field } = await refusal('/c2pa/video', { inputs, output: to({ prefix }) }, s3);
        assert.deepEqual([code, field], ['VALIDATION_FAILED', 'output.prefix'], prefix);
      }
    });

    test('two inputs with the same output are refused', async () => {
      const same = files('/media/x/a.mp4', '/media/y/a.mp4');
      assert.equal((await refusal('/c2pa/video', { inputs: same, output: to({}) }, s3)).reason, 'OUTPUT_TAKEN');
    });

    test('an output in place of its source is refused, by the naming of S3 outputs', async () => {
      const source = (url: string) => [{ type: 'remote_file_url', url }];
      const output = to({ prefix: 'p' });
      const inPlace = { ...env, SERVICE__OUTPUT_SINKS__S3__NAMING: 'in_place' };
      const { reason, inputIndex } = await refusal(
        '/c2pa/video',
        { inputs: source('s3://first/base/p/a.mp4'), output },
        inPlace,
      );
      assert.deepEqual([reason, inputIndex], ['OUTPUT_TOUCHES_SOURCE', 0]);
      await admit('/c2pa/video', { inputs: source('s3://second/base/p/a.mp4'), output }, inPlace);
      await admit('/c2pa/video', { inputs: source('s3://first/base/p/a.mp4'), output }, env);
    });
  });

  for (const prefix of ['', '/', 'a', 'a/b', 'Jahrgang 2026/ä']) {
    test(`the prefix "${prefix}" is taken`, () => admit('/c2pa/video', { inputs, output: { type: 'local', prefix } }));
  }

  for (const value of ['..', 'a/../b', '/etc', 'a\\b', 'a\0b', 'a\nb', 'x'.repeat(300)]) {
    test(`${JSON.stringify(value.slice(0, 20))} is refused as prefix and as name`, async () => {
      for (const key of ['prefix', 'name']) {
        const { code, field } = await refusal('/c2pa/video', { inputs, output: { type: 'local', [key]: value } });
        assert.deepEqual([code, field], ['VALIDATION_FAILED', `output.${key}`]);
      }
    });
  }

  test('two inputs with the same output are refused, naming the later', async () => {
    const found = await refusal('/c2pa/video', { inputs: files('/media/x/a.mp4', '/media/b.mp4', '/media/y/a.mp4') });
    assert.deepEqual(found, { reason: 'OUTPUT_TAKEN', code: 'VALIDATION_FAILED', field: 'inputs[2]', inputIndex: 2 });
  });

  test('names that only the bytes tell apart are left to the run', () =>
    admit('/c2pa/video', { inputs: files('/media/x/a', '/media/y/a') }));

  test('the same name with two extensions is no collision', () =>
    admit('/c2pa/audio', { inputs: files('/media/a.mp3', '/media/a.wav') }));

  test('an output in place of its source is refused, also through links', async () => {
    const env = { SERVICE__OUTPUT_SINKS__LOCAL__NAMING: 'in_place' };
    await mkdir(join(folder, 'out'), { recursive: true });
    await writeFile(join(folder, 'out/real.mp4'), '');
    await symlink(join(folder, 'out'), join(folder, 'linked-folder'));
    await symlink(join(folder, 'out/real.mp4'), join(folder, 'link.mp4'));
    for (const path of ['out/real.mp4', 'linked-folder/real.mp4']) {
      const found = await refusal('/c2pa/video', { inputs: files('/media/a.mp4', join(folder, path)) }, env);
      assert.deepEqual([found.reason, found.inputIndex], ['OUTPUT_TOUCHES_SOURCE', 1]);
    }
    const inputs = [...files(join(folder, 'elsewhere/real.mp4')), ...files(join(folder, 'link.mp4'))];
    assert.equal((await refusal('/c2pa/video', { inputs }, env)).reason, 'OUTPUT_TOUCHES_SOURCE');
  });

  for (const path of ['/', '//', '/media/..']) {
    test(`the folder ${path} is refused as an input, wherever its output would go`, async () => {
      const root = [{ type: 'local_folder_path', path }];
      for (const operation of ['/package', '/c2pa/package'] as const) {
        const refused = await refusal(operation, {
          inputs: root,
          ...(operation === '/c2pa/package' && { params: {} }),
        });
        assert.deepEqual(refused, {
          reason: 'FOLDER_IS_ROOT',
          code: 'VALIDATION_FAILED',
          field: 'inputs[0].path',
          inputIndex: 0,
        });
      }
    });
  }

  test('an output in place of a parent is refused', async () => {
    const parent = { type: 'file', source: files(join(folder, 'out/a_c2pa.mp4'))[0] };
    assert.equal((await refusal('/c2pa/video', { inputs, params: { parent } })).reason, 'OUTPUT_TOUCHES_SOURCE');
    const overrides = [{ input_index: 0, parent }];
    assert.equal(
      (await refusal('/c2pa/video', { inputs, params: { parent_overrides: overrides } })).reason,
      'OUTPUT_TOUCHES_SOURCE',
    );
  });
});

describe('a request with thousands of inputs', () => {
  const COUNT = 5000;

  for (const [path, type] of [
    ['/c2pa/video', 'remote_file_url'],
    ['/package', 'remote_folder_url'],
  ] as const) {
    test(`is looked at in turns with other work: ${type}`, async () => {
      const inputs = Array.from({ length: COUNT }, (_, index) => ({ type, url: `https://example.com/${index}.mp4` }));
      let turns = 0;
      let isAdmitted = false;
      const takeTurn = () => {
        turns += 1;
        if (!isAdmitted) setImmediate(takeTurn);
      };
      setImmediate(takeTurn);
      await admit(path, { inputs });
      isAdmitted = true;
      assert.ok(turns > COUNT / 200, `${turns} turns`);
    });
  }
});

describe('firstConflict', () => {
  const at = (path: string) => [{ inputIndex: 0, path }];

  for (const [destination, source, conflict] of [
    ['/out/a', '/out/a', true],
    ['/out/a/b/c', '/out/a', true],
    ['/out', '/out/a/b', true],
    ['/', '/out/a', true],
    ['/out/a', '/', true],
    ['/out/a', '/out/ab', false],
    ['/out/ab', '/out/a', false],
    ['/out/a', '/out/b', false],
  ] as const) {
    test(`${destination} and the source ${source} ${conflict ? 'touch' : 'do not touch'}`, async () => {
      const found = await firstConflict(
        at(destination),
        new Map([
          ['/elsewhere/x', 'x'],
          [source, 'as given'],
        ]),
      );
      assert.equal(found !== null, conflict);
    });
  }
});
