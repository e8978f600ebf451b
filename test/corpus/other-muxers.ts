import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import {
  ALL_FORMATS,
  BufferTarget,
  Conversion,
  FilePathSource,
  Input,
  MovOutputFormat,
  Mp4OutputFormat,
  Output,
  type OutputFormat,
} from 'mediabunny';
import { createFile, type ISOFile, MP4BoxBuffer } from 'mp4box';
import { runTool } from '../support/run-tool.ts';

/** Files by programs other than ffmpeg: a muxer's habits are those of one author. */
export async function makeByOtherMuxers(folder: string, corpus: string): Promise<void> {
  await makeByMediabunny(folder, corpus);
  makeByMp4box(folder, corpus);
  makeByShakaPackager(folder, corpus);
  makeBySox(folder, corpus);
  makeByLame(folder, corpus);
  makeByFlac(folder, corpus);
}

async function makeByMediabunny(folder: string, corpus: string): Promise<void> {
  const formats: Readonly<Record<string, OutputFormat>> = {
    'mediabunny-first.mp4': new Mp4OutputFormat({ fastStart: 'in-memory' }),
    'mediabunny-last.mp4': new Mp4OutputFormat({ fastStart: false }),
    'mediabunny-fragmented.mp4': new Mp4OutputFormat({ fastStart: 'fragmented' }),
    'mediabunny.mov': new MovOutputFormat({ fastStart: 'in-memory' }),
  };
  for (const [name, format] of Object.entries(formats)) {
    using input = new Input({ formats: ALL_FORMATS, source: new FilePathSource(join(folder, 'film.mp4')) });
    const target = new BufferTarget();
    const conversion = await Conversion.init({ input, output: new Output({ format, target }) });
    await conversion.execute();
    if (target.buffer === null) throw new Error(`mediabunny made no ${name}`);
    writeFileSync(join(corpus, name), Buffer.from(target.buffer));
  }
}

/** A file that mp4box.js parsed and wrote again, box for box. */
function makeByMp4box(folder: string, corpus: string): void {
  const bytes = readFileSync(join(folder, 'film.mp4'));
  const file: ISOFile = createFile(true);
  file.appendBuffer(MP4BoxBuffer.fromArrayBuffer(new Uint8Array(bytes).buffer, 0));
  file.flush();
  writeFileSync(join(corpus, 'mp4box.mp4'), Buffer.from(file.getBuffer().buffer));
}

/** Single-file fragmented, with a `sidx` over the whole file. */
function makeByShakaPackager(folder: string, corpus: string): void {
  const entry = createRequire(import.meta.url).resolve('shaka-packager/package.json');
  const packager = join(dirname(entry), 'bin', `packager-linux-${process.arch}`);
  runTool(folder, packager, [
    '--quiet',
    '--segment_duration=1',
    `in=film.mp4,stream=video,output=${join(corpus, 'shaka-video.mp4')}`,
    `in=film.mp4,stream=audio,output=${join(corpus, 'shaka-audio.mp4')}`,
  ]);
}

function makeBySox(folder: string, corpus: string): void {
  const make = (name: string, parameters = ''): void => {
    runTool(folder, 'sox', ['tone.wav', ...parameters.split(' ').filter(Boolean), join(corpus, name)]);
  };
  make('sox.wav');
  make('sox-mu-law.wav', '-e mu-law');
  make('sox-gsm.wav', '-r 8000 -c 1 -e gsm-full-rate');
  make('sox-comment.wav', '--comment Interview');
  make('sox.flac');
}

function makeByLame(folder: string, corpus: string): void {
  const make = (name: string, parameters: string): void => {
    runTool(folder, 'lame', ['--quiet', ...parameters.split(' '), 'tone.wav', join(corpus, name)]);
  };
  make('lame.mp3', '-b 64');
  make('lame-variable-rate.mp3', '-V 5');
  make('lame-id3v2.mp3', '-b 64 --id3v2-only --tt Song --ta Somebody --ti cover.png');
  make('lame-id3v2-padding.mp3', '-b 64 --id3v2-only --pad-id3v2-size 100000 --tt Song');
  make('lame-id3v1.mp3', '-b 64 --id3v1-only --tt Song');
  make('lame-checksums.mp3', '-b 64 -p');
}

function makeByFlac(folder: string, corpus: string): void {
  const make = (name: string, parameters: string): void => {
    runTool(folder, 'flac', ['--silent', '-f', ...parameters.split(' '), '-o', join(corpus, name), 'tone.wav']);
  };
  make('flac.flac', '-5');
  make('flac-picture.flac', '--picture=cover.png --tag=TITLE=Song');
  make('flac-large-padding.flac', '--padding=1000000');
  make('flac-no-padding-no-seek-table.flac', '--no-padding --no-seektable');
  make('flac-seek-points.flac', '-S 10x');
}
